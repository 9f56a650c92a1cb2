"""Rounds of the wire, RoCEv2 packets through UDP, beside TCP on the same path; the engine alone; memory of a QP."""

import re

import measure
from measure import Failure

KIB = 1024


def bandwidth(bench):
    for size in (64 * KIB, 1024 * KIB):
        label = f"{size // KIB} KiB"
        for program in ("ib_write_bw", "ib_read_bw"):
            rdma = measure.rdma_bandwidth(bench.wire, program, size, bench.seconds)
            tcp = measure.tcp_bandwidth(bench.wire, size, bench.seconds)
            add = bench.figures.add
            add(f"{program}_{size}_gbps", rdma.gbps, f"{program} {label}", "Gb/s")
            add(f"tcp_{size}_{program}_gbps", tcp.gbps, f"iperf3 TCP {label}, beside it", "Gb/s")
            add(f"{program}_{size}_ratio", rdma.gbps / tcp.gbps, f"{program} / TCP, {label}", "", at_least=0.5)
            add(f"{program}_{size}_cpu", rdma.cpu_per_gb, f"{program} {label}, CPU of both ends", "s/GB")
            add(f"tcp_{size}_{program}_cpu", tcp.cpu_per_gb, f"iperf3 TCP {label}, CPU of both ends", "s/GB")


def latency(bench):
    rdma = measure.rdma_latency(bench.wire, "ib_write_lat", 8, 20000)
    tcp = measure.tcp_latency(bench.wire, bench.seconds)
    add = bench.figures.add
    add("write_lat_p50", rdma.p50, "ib_write_lat 8 B, one-way p50", "us")
    add("write_lat_p99", rdma.p99, "ib_write_lat 8 B, one-way p99", "us")
    add("tcp_lat_p50", tcp.p50, "sockperf TCP, one-way p50", "us")
    add("tcp_lat_p99", tcp.p99, "sockperf TCP, one-way p99", "us")
    add("write_lat_ratio", rdma.p50 / tcp.p50, "ib_write_lat / TCP, p50", "", at_most=0.6)


def many_qps(bench):
    """The same bytes through 1,000 QPs and through one; a short queue each, so that both have as much under way."""
    def gbps(*options):
        return measure.perftest(bench.wire, "ib_write_bw", "-s", 4 * KIB, *options, "--report_gbits")[0][0][3]

    one = gbps("-n", 160000, "-t", 128, "-q", 1)
    many = gbps("-n", 160, "-t", 16, "-q", 1000)
    bench.figures.add("one_qp_gbps", one, "ib_write_bw 4 KiB, 1 QP", "Gb/s")
    bench.figures.add("many_qps_gbps", many, "ib_write_bw 4 KiB, 1,000 QPs", "Gb/s")
    bench.figures.add("many_qps_ratio", many / one, "1,000 QPs / 1 QP", "", at_least=0.8)


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


ROUNDS = {"bandwidth": bandwidth, "latency": latency, "qps": many_qps, "engine": engine}
ONCE = {"memory": memory}
