#!/usr/bin/env python3
"""bench: what the numbers in the README come from. Ratios against TCP are of neighbouring runs on the same path;
each figure is the median of the rounds, with the smallest and largest beside it."""

import argparse
import json
import os
import pathlib
import platform
import re
import statistics
import sys
import tempfile

import measure
import stacks
from measure import Failure, places

ROOT = pathlib.Path(__file__).resolve().parent.parent
KIB = 1024
PARTS = ("bandwidth", "latency", "qps", "memory", "engine")
PROGRAMS = ("ucx", "libfabric", "mpi", "connections")


class Figure:
    """One line of the table: values of all rounds, and what is wanted of their median."""

    def __init__(self, key, text, unit, at_least=None, at_most=None):
        self.key, self.text, self.unit = key, text, unit
        self.at_least, self.at_most = at_least, at_most
        self.values = []

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def wanted(self):
        if self.at_least is not None:
            return f">= {self.at_least:g}"
        return f"<= {self.at_most:g}" if self.at_most is not None else ""

    @property
    def is_met(self):
        return (self.at_least is None or self.median >= self.at_least) and (
            self.at_most is None or self.median <= self.at_most)


class Figures(dict):
    def declare(self, key, *arguments, **wanted):
        self.setdefault(key, Figure(key, *arguments, **wanted))
        return self[key]


def bandwidth_round(place, figures, seconds):
    for size in (64 * KIB, 1024 * KIB):
        label = f"{size // KIB} KiB"
        for program in ("ib_write_bw", "ib_read_bw"):
            rdma = measure.rdma_bandwidth(place, program, size, seconds)
            tcp = measure.tcp_bandwidth(place, size, seconds)
            figures.declare(f"{program}_{size}_gbps", f"{program} {label}", "Gb/s").values.append(rdma.gbps)
            figures.declare(f"tcp_{size}_{program}_gbps", f"iperf3 TCP {label}, beside it", "Gb/s").values.append(tcp.gbps)
            figures.declare(f"{program}_{size}_ratio", f"{program} / TCP, {label}", "", at_least=0.5).values.append(
                rdma.gbps / tcp.gbps)
            figures.declare(f"{program}_{size}_cpu", f"{program} {label}, CPU of both ends", "s/GB").values.append(
                rdma.cpu_per_gb)
            figures.declare(f"tcp_{size}_{program}_cpu", f"iperf3 TCP {label}, CPU of both ends", "s/GB").values.append(
                tcp.cpu_per_gb)


def latency_round(place, figures, seconds):
    rdma = measure.rdma_latency(place, "ib_write_lat", 8, 20000)
    tcp = measure.tcp_latency(place, seconds)
    figures.declare("write_lat_p50", "ib_write_lat 8 B, one-way p50", "us").values.append(rdma.p50)
    figures.declare("write_lat_p99", "ib_write_lat 8 B, one-way p99", "us").values.append(rdma.p99)
    figures.declare("tcp_lat_p50", "sockperf TCP, one-way p50", "us").values.append(tcp.p50)
    figures.declare("tcp_lat_p99", "sockperf TCP, one-way p99", "us").values.append(tcp.p99)
    figures.declare("write_lat_ratio", "ib_write_lat / TCP, p50", "", at_most=0.6).values.append(rdma.p50 / tcp.p50)


def many_qps_round(place, figures):
    """The same bytes through 1,000 QPs and through one; a short queue each, so that both have as much under way."""
    size = 4 * KIB
    one = measure.perftest(place, "ib_write_bw", "-s", size, "-n", 160000, "-t", 128, "-q", 1, "--report_gbits")[0][0][3]
    many = measure.perftest(place, "ib_write_bw", "-s", size, "-n", 160, "-t", 16, "-q", 1000, "--report_gbits")[0][0][3]
    figures.declare("one_qp_gbps", "ib_write_bw 4 KiB, 1 QP", "Gb/s").values.append(one)
    figures.declare("many_qps_gbps", "ib_write_bw 4 KiB, 1,000 QPs", "Gb/s").values.append(many)
    figures.declare("many_qps_ratio", "1,000 QPs / 1 QP", "", at_least=0.8).values.append(many / one)


def engine_round(place, figures, build):
    """The engine without sockets: two lanes back to back."""
    with measure.Process(place, [pathlib.Path(build).resolve() / "bench" / "engine_bench"], through_verbena=False) as process:
        process.wait_success(120)
    for label, ns in re.findall(r"^(.*?)\s{2,}([\d.]+) ns a packet", process.stdout, re.M):
        figures.declare(f"engine {label}", f"engine alone, {label}", "ns/packet").values.append(float(ns))


def compare(figures, key, text, unit, ours, theirs):
    """Three lines: over Verbena, over TCP beside it, the ratio."""
    figures.declare(key, f"{text}, Verbena", unit).values.append(ours)
    figures.declare(f"{key}_tcp", f"{text}, TCP beside it", unit).values.append(theirs)
    figures.declare(f"{key}_ratio", f"{text}, Verbena / TCP", "").values.append(ours / theirs)


def ucx_round(place, figures):
    latency = [stacks.ucx(place, "tag_lat", 8, 10000, over_verbena)[0] for over_verbena in (True, False)]
    bandwidth = [stacks.ucx(place, "tag_bw", 64 * KIB, 10000, over_verbena)[1] for over_verbena in (True, False)]
    compare(figures, "ucx_tag_lat_8_us", "ucx_perftest tag_lat 8 B", "us", *latency)
    compare(figures, "ucx_tag_bw_65536_gbps", "ucx_perftest tag_bw 64 KiB", "Gb/s", *bandwidth)


def libfabric_round(place, figures):
    latency = [stacks.fabric(place, 64, 5000, over_verbena)[0] for over_verbena in (True, False)]
    bandwidth = [stacks.fabric(place, 64 * KIB, 2000, over_verbena)[1] for over_verbena in (True, False)]
    compare(figures, "fi_pingpong_64_us", "fi_pingpong 64 B, one way", "us", *latency)
    compare(figures, "fi_pingpong_65536_gbps", "fi_pingpong 64 KiB", "Gb/s", *bandwidth)


def mpi_round(place, figures, build):
    program = built(build, "bench/allreduce")
    for size, label in ((KIB, "1 KiB"), (4096 * KIB, "4 MiB")):
        took = {way: stacks.allreduce(place, program, way, size) for way in stacks.MPI_WAYS}
        compare(figures, f"mpi_allreduce_{size}_us", f"MPI_Allreduce {label}", "us", took["ucx"], took["tcp"])


def connections_round(place, figures, build):
    count = 1000
    phases, seconds = stacks.cmtime(place, count)
    figures.declare("connections_per_second", f"cmtime, {count:,} connections at once, made and ended", "/s"
                    ).values.append(count / seconds)
    for phase, took in phases.items():
        figures.declare(f"cmtime_{phase.replace(' ', '_')}_us", f"cmtime, {phase}, each", "us").values.append(took)
    memory = stacks.connection_memory(place, built(build, "tests/conformance/dial"), count)
    for end, resident in zip(("server", "client"), memory):
        figures.declare(f"bytes_per_connection_{end}", f"memory of an open connection and its buffers, {end}", "bytes"
                        ).values.append(resident)


def built(build, name):
    path = pathlib.Path(build).resolve() / name
    if not path.exists():
        raise Failure(f"{path} was not built; allreduce needs mpicc")
    return path


def own_program(place, figures, build, name, through_verbena, declare):
    """A program of bench/ that prints name=value pairs."""
    path = pathlib.Path(build).resolve() / "bench" / name
    if not path.exists():
        print(f"{name} was not built: left out")
        return
    with measure.Process(place, [path], through_verbena=through_verbena) as process:
        process.wait_success(120)
    for key, value in re.findall(r"(\w+)=([\d.]+)", process.stdout):
        if key in declare:
            figures.declare(key, *declare[key]).values.append(float(value))


def print_table(figures):
    width = max(len(figure.text) for figure in figures.values())
    print(f"\n{'':{width}}  {'median':>10} {'smallest':>10} {'largest':>10}         wanted")
    for figure in figures.values():
        verdict = "" if not figure.wanted else "met" if figure.is_met else "NOT MET"
        print(f"{figure.text:{width}}  {figure.median:10.3f} {min(figure.values):10.3f} {max(figure.values):10.3f} "
              f"{figure.unit:5}   {figure.wanted:8} {verdict}")


def measure_rounds(options, parts, place, figures):
    of_each_round = {
        "bandwidth": lambda: bandwidth_round(place, figures, options.seconds),
        "latency": lambda: latency_round(place, figures, options.seconds),
        "qps": lambda: many_qps_round(place, figures),
        "engine": lambda: engine_round(place, figures, options.build),
        "ucx": lambda: ucx_round(place, figures),
        "libfabric": lambda: libfabric_round(place, figures),
        "mpi": lambda: mpi_round(place, figures, options.build),
        "connections": lambda: connections_round(place, figures, options.build),
    }
    if "libfabric" in parts or "mpi" in parts:
        stacks.prepare_fabric(place)
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}", flush=True)
        for part, run in of_each_round.items():
            if part in parts:
                run()
    if "memory" in parts:
        own_program(place, figures, options.build, "qp_memory", True,
                    {"bytes_per_qp": ("memory of an idle RC QP, connected", "bytes")})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2, help="of one measurement")
    parser.add_argument("--only", choices=PARTS + PROGRAMS, action="append")
    parser.add_argument("--programs", action="store_true", help="what stands on verbs instead: " + ", ".join(PROGRAMS))
    parser.add_argument("--json", metavar="FILE", help="also write all values to FILE")
    options = parser.parse_args()
    parts = options.only or (PROGRAMS if options.programs else PARTS)

    figures = Figures()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}, load "
          f"{os.getloadavg()[0]:.1f}; median of {options.rounds}")
    world = None
    try:
        with tempfile.TemporaryDirectory(prefix="verbena-") as scratch:
            os.chmod(scratch, 0o755)
            world = places.World(places.launcher_for_everyone(options.build, scratch))
            measure_rounds(options, parts, measure.loopback(world), figures)
    except Failure as failure:
        print(failure)
        return 1
    finally:
        if world:
            world.close()
    print_table(figures)
    if options.json:
        rows = {key: {"text": figure.text, "unit": figure.unit, "median": figure.median, "values": figure.values,
                      "wanted": figure.wanted} for key, figure in figures.items()}
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
