"""Rounds of two processes of one host, over the path that they take by themselves, each beside what it has to match, on
the same two cores. Beside a latency or a rate stands a bare ping-pong through shared memory: two virtual cores are
near each other at one time and far at another, and figures of two such times are not compared if it can be helped."""

import functools

import ends as between
import measure
import stacks
from measure import Failure

KIB = 1024
MIB = 1024 * KIB
PINGS = 100000
RATE_COUNT = 4000000
TRIES = 3
ONE_STATE = 1.4  # a bare ping-pong that varies by less has seen one state of the cores
EVENT_COUNT, EVENT_COUNT_FEW = 8192, 1024  # messages of 1 MiB; the fewer tell what starting and ending costs
LANE_MS, LANE_TURNS = 200, 5
MAPPED = {"VERBENA_MAP": "registered"}


def ends_of(bench):
    return bench.same_host.pinned(bench.cores)


def bare_ring(bench):
    return measure.own_program(bench.same_host.server, bench.build, "ring_pingpong", *bench.cores,
                               through_verbena=False)["ring_ns"]


def bare_sleepers(bench):
    return measure.own_program(bench.same_host.server, bench.build, "asleep_pair", *bench.cores, through_verbena=False)


def in_one_state(bench, key, text, *runs):
    """What each of the runs returns, and the bare ring beside them as a figure."""
    for attempt in range(TRIES):
        rings, results = [bare_ring(bench)], []
        for run in runs:
            results.append(run())
            rings.append(bare_ring(bench))
        if max(rings) < ONE_STATE * min(rings) or attempt + 1 == TRIES:
            break
    for ring in rings:
        bench.figures.add(f"{key}_ring_ns", ring, f"{text}: bare ring beside, one way", "ns")
    return results


def beside_ucx(bench, key, text, unit, run, test, pick, size=8, count=PINGS, way="posix", **wanted):
    """run() beside ucx_perftest's test, of which pick says what is compared."""
    ours, theirs = in_one_state(bench, key, text, run, lambda: pick(stacks.ucx(ends_of(bench), test, size, count, way)))
    bench.figures.compare(key, text, unit, ours, theirs, f"UCX {way} {test}", **wanted)
    return ours


def verbs_pair(bench, test, count, memory="heap", apart=0, settings=None):
    place = bench.same_host.server
    return measure.own_program(place, bench.build, "verbs_pair", place.device, place.gid_index(4),
                               "{},{}".format(*bench.cores), test, count, memory, apart,
                               settings=bench.same_host.settings | (settings or {}))


def knows_setting(bench, settings):
    """Whether this build has these settings: verbena run refuses to start with others."""
    with measure.Process(bench.same_host.server, ["true"], settings=settings) as process:
        return process.wait(measure.PATIENCE) == 0


# ------------------------------------------------------------------------------------------------------- latencies

TARGET_EXECUTES = ("a request is executed by the target's lane, mapped or not: who stored for it, and was stopped amid that, "
                   "could store after the memory was deregistered")
POST = ("a post by itself is some 1,100 instructions, of them four that wait for all stores, and its retirement 250, where UCX's "
        "message takes its sender 520; the receiver takes as long as the sender")
LIST = "a message is 700 instructions to its sender and 1,000 to its receiver, the receive posted for it 130 of them"


def send_lat(bench):
    beside_ucx(bench, "local_send_lat", "ib_send_lat 8 B, p50", "us",
               lambda: measure.rdma_latency(ends_of(bench), "ib_send_lat", 8, PINGS).p50, "tag_lat",
               lambda ucx: ucx.us, at_most=1.3,
               bound="a post is some 1,100 instructions and the poll that finds it as many, 0.2 us each, beside the bare ring")


def write_lat(bench):
    beside_ucx(bench, "local_write_lat", "ib_write_lat 8 B, not mapped, both poll, p50", "us",
               lambda: measure.rdma_latency(ends_of(bench), "ib_write_lat", 8, PINGS).p50, "tag_lat",
               lambda ucx: ucx.us, at_most=2, bound="as ib_send_lat")


def write_lat_dm(bench):
    beside_ucx(bench, "local_write_lat_dm", "WRITE 8 B to device memory (mapped), p50", "us",
               lambda: verbs_pair(bench, "lat", PINGS, "dm")["p50_us"], "tag_lat", lambda ucx: ucx.us,
               at_most=0.6, bound=TARGET_EXECUTES)


def write_lat_mapped(bench):
    key, text, wanted = "local_write_lat_mapped", "WRITE 8 B to registered memory, mapped, p50", {
        "at_most": 0.6, "bound": TARGET_EXECUTES}
    if not knows_setting(bench, MAPPED):
        bench.figures.declare_absent(f"{key}_ratio", "there is no VERBENA_MAP=registered", text, "us", **wanted)
        return
    beside_ucx(bench, key, text, "us", lambda: verbs_pair(bench, "lat", PINGS, settings=MAPPED)["p50_us"], "tag_lat",
               lambda ucx: ucx.us, **wanted)


def thread(bench):
    """A target that never calls the library: its progress thread does the work, beside it or in its place."""
    wake = bare_sleepers(bench)["wake_us"]
    bench.figures.add("local_bare_wake", wake, "a bare eventfd wakes a sleeper, p50", "us")
    for test, text in (("thread", "WRITE 8 B, target spins outside of the library, one way, p50"),
                       ("asleep", "WRITE 8 B, target sleeps, until completed, p50")):
        us, = in_one_state(bench, f"local_{test}", text, lambda: verbs_pair(bench, test, 1000))
        bench.figures.add(f"local_{test}_p50", us["p50_us"], text, "us", at_most=15,
                          bound=f"one wake-up is in the way, and a bare eventfd takes {wake:.0f} us for it beside")
        bench.figures.add(f"local_{test}_p99", us["p99_us"], text.replace("p50", "p99"), "us")


# --------------------------------------------------------------------------------------------- rates and bandwidths

def send_rate(bench):
    """As many as one core a side can; several posted by a call, and one."""
    for key, text, bound, options in (
            ("local_send_rate", "ib_send_bw 8 B, a post each", POST, ("-t", 512, "-r", 512)),
            ("local_send_rate_list", "ib_send_bw 8 B, lists of 32", LIST, ("-t", 512, "-r", 512, "-l", 32, "-I", 8))):
        ours = beside_ucx(bench, key, text, "M/s",
                          lambda: measure.rdma_rate(ends_of(bench), 8, bench.seconds, *options), "tag_bw",
                          lambda ucx: ucx.millions, count=RATE_COUNT, at_least=1, bound=bound)
        bench.figures.add(f"{key}_8m", ours, f"{text}, of 8 million", "M/s", at_least=8, bound=bound)


def bandwidth(bench):
    copies = "eight pulls by one call take 3.3 us each, 1.2 to 1.5 of one by itself, which UCX's are"
    reading = (f"{copies}; the reader pulls, posts and polls on one core, two thirds of whose time are pulling, and wakes the "
               "target's thread where somebody else wanted that one's core")
    for program, bound in (("ib_write_bw", copies), ("ib_read_bw", reading)):
        beside_ucx(bench, f"local_{program}", f"{program} 64 KiB", "Gb/s",
                   lambda: measure.rdma_bandwidth(ends_of(bench), program, 64 * KIB, bench.seconds).gbps, "tag_bw",
                   lambda ucx: ucx.gbps, 64 * KIB, 100000, "posix+cma", at_least=1.2, bound=bound)


def mapped_bandwidth(bench, key, text, run, **wanted):
    wanted["bound"] = ("memcpy of 64 KiB is 320 Gb/s on this machine, where all of it lies in the cache of the core that "
                       "copies; for READs the target's thread is woken besides")
    for test in ("write", "read"):
        beside_ucx(bench, f"{key}_{test}", f"{test.upper()} 64 KiB, {text}", "Gb/s", functools.partial(run, test), "tag_bw",
                   lambda ucx: ucx.gbps, 64 * KIB, 100000, "posix+cma", **wanted)


def bandwidth_dm(bench):
    mapped_bandwidth(bench, "local_dm", "device memory (mapped)",
                     lambda test: verbs_pair(bench, test, 100000, "dm")["gbps"], at_least=3)


def bandwidth_mapped(bench):
    key, text = "local_mapped", "registered memory, mapped"
    if not knows_setting(bench, MAPPED):
        for test in ("write", "read"):
            bench.figures.declare_absent(f"{key}_{test}_ratio", "there is no VERBENA_MAP=registered",
                                         f"{test.upper()} 64 KiB, {text}", "", at_least=3)
        return
    mapped_bandwidth(bench, key, text, lambda test: verbs_pair(bench, test, 100000, settings=MAPPED)["gbps"],
                     at_least=3)


def apart(bench):
    """Some processors copy slowly to where the bytes lie a little further in their page than they came from."""
    for test in ("write", "read"):
        text = f"{test.upper()} 64 KiB"
        aligned, shifted = in_one_state(bench, f"local_apart_{test}", text,
                                        *(functools.partial(verbs_pair, bench, test, 50000, "heap", bytes_apart)
                                          for bytes_apart in (0, 16)))
        bench.figures.add(f"local_aligned_{test}", aligned["gbps"], f"{text}, aligned", "Gb/s")
        bench.figures.add(f"local_apart_{test}", shifted["gbps"], f"{text}, 16 bytes apart", "Gb/s")
        bench.figures.add(f"local_apart_{test}_ratio", shifted["gbps"] / aligned["gbps"],
                          f"{text}, 16 bytes apart / aligned", "", at_least=0.8,
                          bound="process_vm_readv by itself, source and target 16 bytes apart, reaches 0.78 to 0.9 of aligned")


def beside_tcp(bench):
    ends = ends_of(bench)
    bench.figures.compare("local_tcp", "ib_write_bw 64 KiB", "Gb/s",
                          measure.rdma_bandwidth(ends, "ib_write_bw", 64 * KIB, bench.seconds).gbps,
                          measure.tcp_bandwidth(ends, 64 * KIB, bench.seconds).gbps, "iperf3 TCP", at_least=3)


def lanes(bench):
    """Two threads, each with both ends of a connection: what they get done beside each other."""
    place = bench.same_host.server
    said = measure.own_program(place, bench.build, "lane_pairs", place.device, place.gid_index(4), 2, LANE_MS, LANE_TURNS,
                               settings=bench.same_host.settings)
    bench.figures.compare("local_lanes", "SEND 8 B within a process, two threads", "M/s", said["all_mps"] / 1e6,
                          said["one_mps"] / 1e6, "one thread", at_least=1.6)


# ------------------------------------------------------------------------------------------------ through programs

def rc_verbs(bench):
    ends = ends_of(bench)
    latency = [stacks.ucx(ends, "tag_lat", 8, 20000, way).us for way in ("verbena", "tcp")]
    bandwidth = [stacks.ucx(ends, "tag_bw", 64 * KIB, 20000, way).gbps for way in ("verbena", "tcp")]
    bench.figures.compare("local_rc_verbs_lat", "ucx_perftest tag_lat 8 B", "us", *latency, at_most=1)
    bench.figures.compare("local_rc_verbs_bw", "ucx_perftest tag_bw 64 KiB", "Gb/s", *bandwidth, at_least=1)


def fi_pingpong(bench):
    stacks.prepare_fabric(bench.same_host.server)
    ends = ends_of(bench)
    latency = [stacks.fabric(ends, 64, 10000, over_verbena)[0] for over_verbena in (True, False)]
    bandwidth = [stacks.fabric(ends, 64 * KIB, 5000, over_verbena)[1] for over_verbena in (True, False)]
    bench.figures.compare("local_fi_lat", "fi_pingpong 64 B, one way", "us", *latency, at_most=1)
    bench.figures.compare("local_fi_bw", "fi_pingpong 64 KiB", "Gb/s", *bandwidth, at_least=1)


def allreduce(bench):
    stacks.prepare_fabric(bench.same_host.server)
    program = measure.built(bench.build, "bench/allreduce")
    for size, label in ((KIB, "1 KiB"), (4 * MIB, "4 MiB")):
        took = {way: stacks.allreduce(bench.same_host, program, way, size) for way in stacks.MPI_WAYS}
        bench.figures.compare(f"local_allreduce_{size}", f"MPI_Allreduce {label}", "us", took["ucx"], took["tcp"],
                              at_most=1)


# ------------------------------------------------------------------------------------------------ what a GB costs

def event_cpu(bench):
    """Event mode: both ends sleep when there is nothing to do. perftest has it for SENDs."""
    bare = bare_sleepers(bench)["cpu"]
    ends, gb = ends_of(bench), (EVENT_COUNT - EVENT_COUNT_FEW) * MIB / 1e9
    ours, theirs = (run(EVENT_COUNT) - run(EVENT_COUNT_FEW) for run in (
        lambda count: measure.moved_cpu(ends, "ib_send_bw", MIB, count, "-e")[0],
        lambda count: measure.iperf3(ends, MIB, "-n", count * MIB)[1]))
    bench.figures.compare("local_event_cpu", "1 MiB, ib_send_bw -e, CPU of both ends", "s/GB", ours / gb, theirs / gb,
                          "iperf3", at_most=0.17,
                          bound=f"two bare processes, one process_vm_readv a message, take {bare:.3f} s/GB beside")


def event_calls(bench):
    bare = bare_sleepers(bench)["calls"]
    text, wanted = "1 MiB, ib_send_bw -e, system calls of both ends", {
        "at_most": 0.01, "bound": f"two bare processes, one process_vm_readv a message, make {bare:.0f} a GB; the others "
                                  "are the receiver's program, which waits for each message"}
    counter = between.call_counter()
    if not counter:
        bench.figures.declare_absent("local_event_calls_ratio", "neither perf nor strace counts them", text, "", **wanted)
        return
    runs = (lambda ends, count: measure.moved_cpu(ends, "ib_send_bw", MIB, count, "-e"),
            lambda ends, count: measure.iperf3(ends, MIB, "-n", count * MIB))
    per_gb = []
    for run in runs:
        many, few = (measure.count_calls(bench.same_host, bench.cores, counter, lambda ends, n=count: run(ends, n))
                     for count in (EVENT_COUNT, EVENT_COUNT_FEW))
        per_gb.append((many - few) / ((EVENT_COUNT - EVENT_COUNT_FEW) * MIB / 1e9))
    if per_gb[1] <= 0:
        raise Failure(f"{counter} counted no system calls of iperf3")
    bench.figures.compare("local_event_calls", text, "calls/GB", *per_gb, "iperf3", **wanted)


ROUNDS = {"send-lat": send_lat, "write-lat": write_lat, "write-lat-dm": write_lat_dm,
          "write-lat-mapped": write_lat_mapped, "thread": thread, "send-rate": send_rate, "copied": bandwidth,
          "dm": bandwidth_dm, "mapped": bandwidth_mapped, "apart": apart, "tcp": beside_tcp,
          "lanes": lanes, "rc-verbs": rc_verbs,
          "fi-pingpong": fi_pingpong, "allreduce": allreduce, "event-cpu": event_cpu, "event-calls": event_calls}
