"""Rounds of the wire, RoCEv2 packets through UDP, beside TCP and beside bare UDP sockets (udp_raw.c) on the same path; the
engine alone; memory of a QP."""

import os
import re

import measure
from measure import Failure

KIB = 1024
MIB = 1024 * KIB
PINGS = 20000
MESSAGES = 20000
EVENT_COUNT, EVENT_COUNT_FEW = 24000, 4000  # the fewer tell what starting and ending costs
QPS = 10000

# -------------------------------------------------------------------------------------------------------- bandwidth

TWO_DATAGRAMS = "64 KiB and their headers are two datagrams, and each is routed, queued and read by itself"
BARE = "bare UDP sockets with these datagrams, no checksum and no copy of ours, reach {:.2f} of TCP beside"


def _bandwidth(bench, ends, key, text):
    for size, label, reading in ((64 * KIB, "64 KiB", TWO_DATAGRAMS), (MIB, "1 MiB", "")):
        bare = measure.raw_bandwidth(ends, bench.build, bench.seconds)
        bench.figures.add(f"{key}_bare_{size}", bare, f"{text}: bare UDP, beside {label}", "Gb/s")
        for program in ("ib_write_bw", "ib_read_bw"):
            rdma = measure.rdma_bandwidth(ends, program, size, bench.seconds)
            tcp = measure.tcp_bandwidth(ends, size, bench.seconds)
            bench.figures.compare(f"{key}_{program}_{size}", f"{text}: {program} {label}", "Gb/s", rdma.gbps, tcp.gbps,
                                  "iperf3", at_least=1, bound="; ".join(filter(None, (reading, BARE.format(bare / tcp.gbps)))))


def bandwidth(bench):
    _bandwidth(bench, bench.wire, "wire", "lo")


def bandwidth_veth(bench):
    _bandwidth(bench, bench.veth, "veth", "veth")


def event_cpu(bench):
    """Both ends sleep when there is nothing to do; TCP at the rate that ours reached."""
    def ours(count):
        return measure.moved_cpu(bench.wire, "ib_send_bw", 64 * KIB, count, "-e")

    def theirs(count):
        return measure.iperf3(bench.wire, 64 * KIB, "-n", count * 64 * KIB, "-b", int(rate * 1e9))[1]

    (many, rate), (few, _) = ours(EVENT_COUNT), ours(EVENT_COUNT_FEW)
    gb = (EVENT_COUNT - EVENT_COUNT_FEW) * 64 * KIB / 1e9
    bench.figures.add("wire_event_rate", rate, "lo: ib_send_bw -e 64 KiB", "Gb/s")
    bench.figures.compare("wire_event_cpu", "lo: 64 KiB, event mode, CPU of both ends", "s/GB", (many - few) / gb,
                          (theirs(EVENT_COUNT) - theirs(EVENT_COUNT_FEW)) / gb, "iperf3", at_most=1.3,
                          bound="the checksum is read over by both ends, the payload copied twice by its receiver; " + TWO_DATAGRAMS)


def acks(bench):
    sent = measure.datagrams_of_server(bench.wire, "ib_write_bw", 64 * KIB, MESSAGES)
    bench.figures.add("wire_acks", sent / MESSAGES, "lo: ib_write_bw 64 KiB, datagrams of its server a message", "", at_most=0.25,
                      bound="who asks again after 384 KiB is answered once in six messages, and each time its queue ran empty")


# ---------------------------------------------------------------------------------------------------------- latency

OUTSIDE = ("ib_write_lat looks for what is written outside of the library, so each WRITE is taken by a progress thread, which needs "
           "a core that the program spins on: four threads of two processes here on {} cores")


LATENCIES_WANTED = {("ib_write_lat", "sockperf TCP"): 0.6, ("ib_write_lat", "bare UDP"): 1.5}  # at most


def latency(bench):
    """ib_write_lat, and ib_send_lat, whose ends wait within the library, beside both references: each once, then the ratios."""
    beside = {"sockperf TCP": measure.tcp_latency(bench.wire, bench.seconds),
              "bare UDP": measure.raw_latency(bench.wire, bench.build, PINGS)}
    ours = {program: measure.rdma_latency(bench.wire, program, 8, PINGS) for program in ("ib_write_lat", "ib_send_lat")}
    for name in ("p50", "p99"):
        for who, measured in (beside | ours).items():
            bench.figures.add(f"wire_latency_{name}_{who}", getattr(measured, name), f"lo: {who}, one way, {name}", "us")
        for program, of_program in ours.items():
            for reference, of_reference in beside.items():
                bench.figures.add(f"wire_latency_{name}_{program}_{reference}_ratio",
                                  getattr(of_program, name) / getattr(of_reference, name),
                                  f"lo: {program} / {reference}, one way, {name}", "",
                                  at_most=LATENCIES_WANTED.get((program, reference)),
                                  bound=OUTSIDE.format(os.cpu_count()))


def posts(bench):
    """What is posted one by one leaves together with others, or as it would from lists."""
    def rate(*options):
        return measure.rdma_rate(bench.wire, 64, bench.seconds, *options)

    bench.figures.compare("wire_posts", "lo: ib_send_bw 64 B, posted one by one", "M/s", rate(), rate("-l", 16), "lists of 16")


# ---------------------------------------------------------------------------------------------------- QPs and lanes

def many_qps(bench):
    """The same bytes through 10,000 QPs and through one; a short queue each, so that both have as much under way."""
    def gbps(*options):
        return measure.perftest(bench.wire, "ib_write_bw", "-s", 4 * KIB, *options, "--report_gbits")[0][0][3]

    bench.figures.compare("wire_many_qps", f"lo: ib_write_bw 4 KiB, {QPS:,} QPs", "Gb/s", gbps("-n", 16, "-t", 16, "-q", QPS),
                          gbps("-n", 160000, "-t", 128, "-q", 1), "1 QP", at_least=0.8)


def engine(bench):
    """The engine without sockets: two lanes back to back."""
    path = measure.built(bench.build, "bench/engine_bench")
    with measure.Process(bench.wire.server, [path], through_verbena=False) as process:
        process.wait_success(120)
    for label, ns in re.findall(r"^(.*?)\s{2,}([\d.]+) ns a packet", process.stdout, re.M):
        bench.figures.add(f"engine {label}", float(ns), f"engine alone, {label}", "ns/packet")


def memory(bench):
    said = measure.own_program(bench.wire.server, bench.build, "qp_memory", settings=bench.wire.settings)
    if "bytes_per_qp" not in said:
        raise Failure("qp_memory said nothing")
    bench.figures.add("bytes_per_qp", said["bytes_per_qp"], "memory of an idle RC QP, connected", "bytes")


ROUNDS = {"bandwidth": bandwidth, "bandwidth-veth": bandwidth_veth, "event-cpu": event_cpu, "acks": acks, "latency": latency, "posts": posts,
          "qps": many_qps, "engine": engine}
ONCE = {"memory": memory}
