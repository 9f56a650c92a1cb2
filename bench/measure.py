"""One measurement each: an RDMA program on Verbena, or its TCP counterpart, between two ends (ends.py) on this machine.

Everything runs in a network namespace of its own when that is to be had, else on the machine's loopback; lo is lo.
Both ends' CPU time counts, set-up included, and what the kernel does between them."""

import collections
import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/conformance"))
sys.dont_write_bytecode = True

import ends as between
import places
import programs
from process import Failure, Process, finish

Bandwidth = collections.namedtuple("Bandwidth", "gbps cpu_per_gb bytes stats")
Latency = collections.namedtuple("Latency", "p50 p99 stats")

PATIENCE = 60  # seconds beyond which a measurement is a hang


def expect_installed(*names):
    for name in names:
        if not shutil.which(str(name)):
            raise Failure(f"{name} is not installed")


def _processor_seconds():
    """Of all processors: user, nice, system, idle, iowait, irq, softirq, steal."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    return [int(field) / os.sysconf("SC_CLK_TCK") for field in fields]


def cpu():
    """Seconds of our processes that have ended, and of the machine's soft interrupts, of which none is told."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    *_, irq, softirq, _ = _processor_seconds()
    return used.ru_utime + used.ru_stime + irq + softirq


def busy():
    """Seconds of all processors that were not idle: of what goes on running, too, and of all else on the machine."""
    user, nice, system, _, _, *rest = _processor_seconds()
    return user + nice + system + sum(rest)


def _both_stats(server, client):
    total = collections.Counter(server.stats())
    total.update(client.stats())
    if not total:
        raise Failure(f"no VERBENA_STATS line: did it run on Verbena?\n{client.evidence()}")
    return total


def pair(ends, words_at, port):
    """Server and client over Verbena, both ended well. words_at(place): a command; the client has the address behind it."""
    words = words_at(ends.server)
    name = words[0]
    with Process(ends.server, words, settings=ends.settings, name=f"server {name}") as server:
        server.wait_listening(port)
        with Process(ends.client, [*words_at(ends.client), ends.server.address[4]], settings=ends.settings,
                     name=f"client {name}") as client:
            finish([server, client], PATIENCE)
    return server, client


def perftest_pair(ends, program, *options):
    port = programs.next_port()
    return pair(ends, lambda place: [program, "-d", place.device, "-x", str(place.gid_index(4)), "-p", str(port), "-F",
                                     *map(str, options)], port)


def perftest(ends, program, *options):
    """Run a perftest pair to its end; (client's rows, counters of both ends)."""
    server, client = perftest_pair(ends, program, *options)
    rows = programs.result_rows(client.stdout)
    if not rows:
        raise Failure(f"no row of results\n{client.evidence()}")
    return rows, _both_stats(server, client)


def rdma_bandwidth(ends, program, size, seconds, *options):
    before = cpu()
    rows, stats = perftest(ends, program, "-s", size, "-D", seconds, "--report_gbits", *options)
    moved = stats["tx_bytes"]
    return Bandwidth(rows[0][3], (cpu() - before) / (moved / 1e9), moved, stats)


def rdma_latency(ends, program, size, rounds):
    rows, stats = perftest(ends, program, "-s", size, "-n", rounds)
    # bytes, iterations, min, max, typical (the median), average, deviation, 99%, 99.9%
    return Latency(rows[0][4], rows[0][7], stats)


def rdma_rate(ends, size, seconds, *options):
    """SENDs of that size, millions a second."""
    rows, _ = perftest(ends, "ib_send_bw", "-s", size, "-D", seconds, *options)
    return rows[0][4]


def moved_cpu(ends, program, size, count, *options):
    """(CPU seconds of both ends for so many messages, Gb/s)"""
    before = cpu()
    rows, _ = perftest(ends, program, "-s", size, "-n", count, "--report_gbits", *options)
    return cpu() - before, rows[0][3]


def datagrams_of_server(ends, program, size, count):
    """How many the passive end sends for so many messages."""
    server, _ = perftest_pair(ends, program, "-s", size, "-n", count)
    return server.stats()["port_tx_datagrams"]


def _raw(ends, build, test, *amounts):
    """{name: value} of udp_raw.c between both ends."""
    path, port = built(build, "bench/udp_raw"), programs.next_port()
    with Process(ends.server, [path, "serve", port], through_verbena=False, name="udp_raw server") as server:
        server.wait_output("serving")
        with Process(ends.client, [path, test, ends.server.address[4], port, *amounts], through_verbena=False,
                     name="udp_raw client") as client:
            finish([server, client], PATIENCE)
    return {key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)", client.stdout)}


def raw_bandwidth(ends, build, seconds, payload=8448):
    """payload: bytes of each packet; 8448: what large packets carry over jumbo frames."""
    return _raw(ends, build, "stream", seconds * 1000, payload)["gbps"]


def raw_latency(ends, build, rounds):
    said = _raw(ends, build, "pingpong", rounds)
    return Latency(said["p50_us"], said["p99_us"], None)


def iperf3(ends, size, *options):
    """(what it says of the receiver, CPU seconds of both ends)"""
    port = programs.next_port()
    before = cpu()
    with Process(ends.server, ["iperf3", "-s", "-1", "-p", port], through_verbena=False, name="iperf3 server") as server:
        server.wait_listening(port)
        with Process(ends.client, ["iperf3", "-c", ends.server.address[4], "-p", port, "-l", size, "-J", *options],
                     through_verbena=False, name="iperf3 client") as client:
            finish([server, client], PATIENCE)
    return json.loads(client.stdout)["end"]["sum_received"], cpu() - before


def tcp_bandwidth(ends, size, seconds):
    received, cpu = iperf3(ends, size, "-t", seconds)
    return Bandwidth(received["bits_per_second"] / 1e9, cpu / (received["bytes"] / 1e9), received["bytes"], None)


def count_calls(ends, cores, counter, run):
    """System calls of both ends while run(ends) runs on two cores, starting and ending included."""
    with tempfile.TemporaryDirectory(prefix="verbena-") as scratch:
        files = [pathlib.Path(scratch, end) for end in ("server", "client")]
        run(ends.counted(counter, files).pinned(cores))
        counts = [between.calls_in(counter, file.read_text()) for file in files]
    if None in counts:
        raise Failure(f"{counter} counted nothing")
    return sum(counts)


def tcp_latency(ends, seconds):
    """sockperf's TCP ping-pong: one-way, half of a round trip, of its smallest message (14 bytes)."""
    port = programs.next_port()
    with Process(ends.server, ["sockperf", "server", "--tcp", "-i", ends.server.address[4], "-p", port], through_verbena=False,
                 name="sockperf server") as server:
        server.wait_listening(port)
        with Process(ends.client, ["sockperf", "ping-pong", "--tcp", "-i", ends.server.address[4], "-p", port, "-t", seconds,
                             "-m", "14"], through_verbena=False, name="sockperf client") as client:
            client.wait_success(PATIENCE)
    found = {wanted: re.search(rf"percentile {wanted}\.000 =\s*([\d.]+)", client.stdout) for wanted in ("50", "99")}
    if not all(found.values()):
        raise Failure(f"no percentiles\n{client.evidence()}")
    return Latency(float(found["50"][1]), float(found["99"][1]), None)


def pingpong(ends, program, size, rounds):
    """(one-way µs on average, Gb/s of both directions, counters)"""
    port = programs.next_port()
    server, client = pair(ends, lambda place: [program, "-d", place.device, "-g", str(place.gid_index(4)), "-p", str(port),
                                               "-s", str(size), "-n", str(rounds)], port)
    round_trip = float(programs.expect(client, r"= ([\d.]+) usec/iter", "the time of a round trip")[1])
    return round_trip / 2, 2 * size * 8 / (round_trip * 1e3), _both_stats(server, client)


def own_program(place, build, name, *arguments, settings=None, through_verbena=True):
    """{name: value} of what a program of bench/ prints."""
    path = built(build, f"bench/{name}")
    with Process(place, [path, *arguments], settings=settings, through_verbena=through_verbena) as process:
        process.wait_success(PATIENCE)
    return {key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)", process.stdout)}


def built(build, name):
    path = pathlib.Path(build).resolve() / name
    if not path.exists():
        raise Failure(f"{path} was not built; programs of MPI need mpicc")
    return path


def loopback(world):
    """Both ends in a namespace of their own, over the path that they take by themselves."""
    path = world.open("vb_lo")
    return between.Ends(path.server, path.client, between.SAME_HOST)


def veth(world):
    """Two namespaces, and an MTU that carries packets of 4 KiB."""
    path = world.open("veth9000")
    if not path:
        raise Failure(world.unavailable["veth9000"])
    return between.Ends(path.server, path.client, between.WIRE)


@contextlib.contextmanager
def linked(world, build, *options):
    """Two namespaces joined by tests/link with these options, from which packets are late, lost, or out of order. Time counts from
    here on."""
    command = [built(build, "tests/link/link"), *map(str, options), "--quiet", "--hold"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as link:
        near, far = (link.stdout.readline().split() for _ in range(2))
        if not far:
            raise Failure("tests/link made no link: no /dev/net/tun, or no namespaces")
        ends = [places.Place(words, name, world.launcher, "vb_link0", f"10.78.0.{number}", f"fd78::{number}")
                for words, name, number in ((near, "near", 1), (far, "far", 2))]
        try:
            yield between.Ends(ends[1], ends[0], between.WIRE)
        finally:
            link.stdin.close()
            link.wait()
