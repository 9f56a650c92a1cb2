"""Pairs that say what losses cost RDMA between two Verbena ends, and what several paths bring: a command where packets are lost, late
or on a dead path, and the same command where they are not, turn about. Over a veth with an MTU of 9000 the faults are those of
VERBENA_FAULTS at both ends; ways of some length, and paths, are those of tests/link."""

import contextlib
import copy
import dataclasses
import json
import pathlib
import tempfile
import threading
import time

import ends as between
import measure
import places
from measure import Failure, Process, finish, programs

KIB = 1024
MIB = 1024 * KIB
LOSSLESS = "drop=0%"
HELD = ("a core for each end is busy without a loss, and what comes behind a missing packet is copied once more: with a window of "
        "2 MB that is half of all packets where 0.1% are lost")

# ---- Pairs ----------------------------------------------------------------------------------------------------------


def under(ends, **settings):
    """The same ends with more settings: PATHS is VERBENA_PATHS."""
    return dataclasses.replace(ends, settings={**ends.settings, **{f"VERBENA_{name}": str(value) for name, value in settings.items()}})


def struck(ends, faults):
    """The same ends, both with these faults, each with a seed of its own: with the same one what tells of a loss is lost with it, where
    both ends receive as many packets."""
    places = [copy.copy(place) for place in (ends.server, ends.client)]
    for seed, place in enumerate(places):
        place.settings = {**place.settings, "VERBENA_FAULTS": f"{faults},seed={seed + 1}"}
    return dataclasses.replace(ends, server=places[0], client=places[1])


def both(bench, run, ours, theirs):
    """(run(ours), run(theirs)); which of them runs first changes from round to round."""
    if bench.round % 2 == 0:
        return run(ours), run(theirs)
    other = run(theirs)
    return run(ours), other


def compare(bench, key, text, ours, theirs, beside="lossless", **wanted):
    """Two bandwidths, and their ratio, of which something is wanted."""
    bench.figures.add(key, ours.gbps, text, "Gb/s")
    bench.figures.add(f"{key}_beside", theirs.gbps, f"{text}: {beside} beside", "Gb/s")
    bench.figures.add(f"{key}_ratio", ours.gbps / theirs.gbps, f"{text}, of {beside}", "", **wanted)


def beside_lossless(bench, key, text, program, size, faults, options=(), **wanted):
    """Both bandwidths, with and without the faults."""
    pair = both(bench, lambda spec: measure.rdma_bandwidth(struck(bench.veth, spec), program, size, bench.seconds, *options),
                faults, LOSSLESS)
    compare(bench, key, text, *pair, **wanted)
    return pair


# ---- Lost and late packets ------------------------------------------------------------------------------------------

def lossy(program, size, wanted, *options):
    """A row of this program: {share that is lost: ratio that is wanted}."""
    def run(bench):
        for share, least in wanted.items():
            text = " ".join([program, f"{size // KIB} KiB", *map(str, options)]) + f", {share} lost"
            beside_lossless(bench, f"loss_{program}_{size}_{share}", text, program, size, f"drop={share}", options, at_least=least,
                            bound=HELD)
    return run


def bursts(bench):
    beside_lossless(bench, "loss_bursts", "ib_write_bw 64 KiB, 0.1% lost in runs of ten", "ib_write_bw", 64 * KIB,
                    "drop=0.1%,burst=10", at_least=0.9, bound=HELD)


def late(bench):
    text = "ib_write_bw 64 KiB, 1% 200 us late"
    ours, _ = beside_lossless(bench, "loss_late", text, "ib_write_bw", 64 * KIB, "late=1%,late-by=200us", at_least=0.95,
                              bound=HELD)
    bench.figures.add("loss_late_in_vain", 100 * ours.stats["sent_in_vain"] / ours.stats["tx_packets"], f"{text}: sent in vain", "%",
                      at_most=0.1)


# size: (messages, column of perftest's row, its name)
TAILS = {4 * KIB: (20000, 8, "p99.9"), 64 * KIB: (5000, 7, "p99")}


def tails(bench):
    """perftest prints half of a round trip."""
    for size, (count, column, name) in TAILS.items():
        def run(spec, options=("-s", size, "-n", count)):
            return measure.perftest(struck(bench.veth, spec), "ib_write_lat", *options)[0][0]

        ours, theirs = both(bench, run, "drop=0.1%", LOSSLESS)
        text, key = f"ib_write_lat {size // KIB} KiB, 0.1% lost: round trip", f"loss_tail_{size}"
        bench.figures.add(f"{key}_lossless", 2 * theirs[4] / 1e3, f"{text}, lossless, p50", "ms")
        bench.figures.add(f"{key}_{name}", 2 * ours[column] / 1e3, f"{text}, {name}", "ms")
        bench.figures.add(f"{key}_beyond", 2 * (ours[column] - 3 * theirs[4]) / 1e3, f"{text}, {name} less three lossless", "ms", at_most=1)


def no_loss(bench):
    """What it costs to be able to recover singly where nothing is lost."""
    ours, theirs = both(bench, lambda recovery: measure.rdma_bandwidth(under(bench.veth, RECOVERY=recovery), "ib_write_bw", 64 * KIB,
                                                                       bench.seconds), "auto", "go-back-n")
    text = "ib_write_bw 64 KiB, nothing lost"
    compare(bench, "loss_none", text, ours, theirs, "go-back-n", at_least=0.97)
    bench.figures.add("loss_none_cpu", ours.cpu_per_gb / theirs.cpu_per_gb, f"{text}: CPU a GB, of go-back-n", "", at_most=1.05)


# ---- A long way -----------------------------------------------------------------------------------------------------

LONG = ("--rate", "1Gb/s", "--delay", "50ms", "--queue", "2MB", "--loss", "1%")
LONG_RATE = 1.0  # Gb/s
LONG_SECONDS = 20
LONG_TIMEOUT = 18  # of 1.07 s: perftest's own, 67 ms, is less than the round trip
LONG_WANTED = {"queue": {"at_least": 0.8}, "window": {}}


def long_way(bench):
    for algorithm, wanted in LONG_WANTED.items():
        with measure.linked(bench.world, bench.build, *LONG) as ends:
            gbps = measure.rdma_bandwidth(under(ends, CC=algorithm), "ib_write_bw", MIB, LONG_SECONDS, "-t", 64, "-u", LONG_TIMEOUT).gbps
        bench.figures.add(f"loss_long_{algorithm}", gbps / LONG_RATE,
                          f"1 Gb/s, 100 ms, 1% lost: ib_write_bw 1 MiB, VERBENA_CC={algorithm}, of the bottleneck", "", **wanted)
    known = pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    for algorithm in ("cubic", "bbr"):
        key, text = f"loss_long_tcp_{algorithm}", f"1 Gb/s, 100 ms, 1% lost: TCP, {algorithm}, of the bottleneck"
        if algorithm not in known:
            bench.figures.declare_absent(key, f"this kernel has no {algorithm}", text, "")
        elif bench.round == 0:
            with measure.linked(bench.world, bench.build, *LONG) as ends:
                received, _ = measure.iperf3(ends, 128 * KIB, "-t", LONG_SECONDS, "-C", algorithm)
            bench.figures.add(key, received["bits_per_second"] / 1e9 / LONG_RATE, text, "")


# ---- Many paths -----------------------------------------------------------------------------------------------------

PATHS = 8
BAD = 3  # the path that drops or dies
PATHED = ("--paths", PATHS, "--mtu", 9000)
SKEWED = [word for path in range(PATHS) for word in ("--path", f"{path}:delay={path * 200 // (PATHS - 1)}us")]
DEAD_AFTER, DEAD_SECONDS, SETTLED = 3, 4, 0.05
TRIES = 5  # its ports, drawn by chance, may leave a path alone


def pathed_bandwidth(bench, options):
    with measure.linked(bench.world, bench.build, *PATHED, *options) as ends:
        return measure.rdma_bandwidth(under(ends, PATHS=PATHS), "ib_write_bw", 64 * KIB, bench.seconds)


def skew(bench):
    compare(bench, "loss_skew", "8 paths, 0 to 200 us long", *both(bench, lambda options: pathed_bandwidth(bench, options), SKEWED,
                                                                  ("--delay", "100us")), "8 of 100 us", at_least=0.95)


def path_drops(bench):
    compare(bench, "loss_path_drops", "8 paths, one drops 20%", *both(bench, lambda options: pathed_bandwidth(bench, options),
                                                                     ("--path", f"{BAD}:loss=20%"), ()), at_least=0.95)


class Meter:
    """What comes in at a place, in bytes, every 5 ms, from its beginning to its end."""

    def __init__(self, pid, interface):
        self._file, self._interface = pathlib.Path(f"/proc/{pid}/net/dev"), interface
        self._seen, self._is_over = [], threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()

    def _watch(self):
        while not self._is_over.wait(0.005):
            with contextlib.suppress(OSError):
                for line in self._file.read_text().splitlines():
                    name, _, counts = line.strip().partition(":")
                    if name == self._interface:
                        self._seen.append((time.monotonic(), int(counts.split()[0])))

    def rate(self, begin, end):
        """Bytes a second between two times."""
        within = [(at, came) for at, came in self._seen if begin <= at <= end]
        if len(within) < 2:
            raise Failure(f"nothing was seen to come in during {end - begin:g} s")
        return (within[-1][1] - within[0][1]) / (within[-1][0] - within[0][0])


def end_on_what_is_left(ends):
    """Until both have ended; or the client has printed its row, for what perftest says over TCP then may go by the path that died."""
    try:
        finish(ends, DEAD_SECONDS + 10)
    except Failure as failure:
        if not str(failure).startswith("hang") or not programs.result_rows(ends[1].stdout):
            raise


def rates_about_death(bench, folder):
    """(bytes a second that came in the second before a path died, in that after the first 50 ms without it, packets that it lost)."""
    report = pathlib.Path(folder, "link.json")
    with measure.linked(bench.world, bench.build, *PATHED, "--path", f"{BAD}:dead-after={DEAD_AFTER}s", "--json", report) as ends:
        died, port = time.monotonic() + DEAD_AFTER, programs.next_port()
        ends = under(ends, PATHS=PATHS)

        def words(place):
            return ["ib_write_bw", "-d", place.device, "-x", place.gid_index(4), "-p", port, "-F", "-s", 64 * KIB, "-D", DEAD_SECONDS]

        with Process(ends.server, words(ends.server), settings=ends.settings, name="server ib_write_bw") as server:
            server.wait_listening(port)
            with Process(ends.client, [*words(ends.client), ends.server.address[4]], settings=ends.settings,
                         name="client ib_write_bw") as client, Meter(server.pid, "link0") as meter:
                end_on_what_is_left([server, client])
        rates = meter.rate(died - 1, died), meter.rate(died + SETTLED, died + SETTLED + 1)
    return *rates, json.loads(report.read_text())["forward"]["paths"][BAD]["dead"]


def path_dies(bench):
    """Of what comes in, which is all but what was sent twice. A run in which no packet was on the path that died says nothing."""
    with tempfile.TemporaryDirectory(prefix="verbena-") as folder:
        for _ in range(TRIES):
            before, after, lost = rates_about_death(bench, folder)
            if lost:
                break
        else:
            raise Failure(f"no packet was on path {BAD} when it died, {TRIES} times")
    text = "8 paths, one dies"
    bench.figures.add("loss_path_dies_before", before * 8 / 1e9, f"{text}: what came in, the second before", "Gb/s")
    bench.figures.add("loss_path_dies_ratio", after / before, f"{text}: the second after 50 ms, of that before", "", at_least=0.95)


# ---- Two links ------------------------------------------------------------------------------------------------------

SHAPED = ("root", "tbf", "rate", "1gbit", "burst", "256k", "limit", "2m")


def two_links(bench):
    """Each of 1 Gb/s: a connection of many paths uses both."""
    first = bench.world.veth(f"links{bench.round}", 9000)
    second = places.second_cable(bench.world, first, 9000)
    for place in (first.server, first.client, second.server, second.client):
        place.run("tc", "qdisc", "add", "dev", place.device.removeprefix("vb_"), *SHAPED)
    ends = between.Ends(first.server, first.client, between.WIRE)
    for program in ("ib_write_bw", "ib_read_bw"):
        pair = both(bench, lambda paths, program=program: measure.rdma_bandwidth(under(ends, PATHS=paths), program, 64 * KIB, bench.seconds),
                    PATHS, "auto")
        compare(bench, f"loss_links_{program}", f"{program} 64 KiB, 8 paths over two links of 1 Gb/s", *pair, "one path", at_least=1.9)


LARGE = {"0.01%": 0.98, "0.1%": 0.95, "1%": 0.85, "5%": 0.6}
READS = {"0.1%": 0.92, "1%": 0.78, "5%": 0.6}
SMALL = {"0.1%": 0.95, "1%": 0.8}

ROUNDS = {"write": lossy("ib_write_bw", 64 * KIB, LARGE), "send": lossy("ib_send_bw", 64 * KIB, LARGE),
          "read": lossy("ib_read_bw", 64 * KIB, READS), "small": lossy("ib_write_bw", 4 * KIB, SMALL, "-t", 1024),
          "tails": tails, "bursts": bursts, "late": late, "no-loss": no_loss, "long-way": long_way, "skew": skew,
          "path-drops": path_drops, "path-dies": path_dies, "two-links": two_links}
