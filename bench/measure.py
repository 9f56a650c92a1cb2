"""One measurement each: an RDMA program on Verbena, or its TCP counterpart, server and client on this machine's lo.

Everything runs in a network namespace of its own when that is to be had, else on the machine's loopback; lo is lo.
Both ends' CPU time counts, set-up included."""

import collections
import json
import pathlib
import re
import resource
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/conformance"))
sys.dont_write_bytecode = True

import places
import programs
from process import Failure, Process, finish

Bandwidth = collections.namedtuple("Bandwidth", "gbps cpu_per_gb bytes stats")
Latency = collections.namedtuple("Latency", "p50 p99 stats")

PATIENCE = 60  # seconds beyond which a measurement is a hang


def _cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _both_stats(server, client):
    total = collections.Counter(server.stats())
    total.update(client.stats())
    if not total:
        raise Failure(f"no VERBENA_STATS line: did it run on Verbena?\n{client.evidence()}")
    return total


def perftest(place, program, *options):
    """Run a perftest pair to its end; (client's rows, counters of both ends)."""
    port = programs.next_port()
    arguments = [program, "-d", place.device, "-x", str(place.gid_index(4)), "-p", str(port), "-F", *map(str, options)]
    settings = {"VERBENA_LOCAL": "off"}  # the wire path is what is measured
    with Process(place, arguments, settings=settings, name=f"server {program}") as server:
        server.wait_listening(port)
        with Process(place, arguments + [place.address[4]], settings=settings, name=f"client {program}") as client:
            finish([server, client], PATIENCE)
    rows = programs.result_rows(client.stdout)
    if not rows:
        raise Failure(f"no row of results\n{client.evidence()}")
    return rows, _both_stats(server, client)


def rdma_bandwidth(place, program, size, seconds, *options):
    before = _cpu()
    rows, stats = perftest(place, program, "-s", size, "-D", seconds, "--report_gbits", *options)
    moved = stats["tx_bytes"]
    return Bandwidth(rows[0][3], (_cpu() - before) / (moved / 1e9), moved, stats)


def rdma_latency(place, program, size, rounds):
    rows, stats = perftest(place, program, "-s", size, "-n", rounds)
    # bytes, iterations, min, max, typical (the median), average, deviation, 99%, 99.9%
    return Latency(rows[0][4], rows[0][7], stats)


def tcp_bandwidth(place, size, seconds):
    port = programs.next_port()
    before = _cpu()
    with Process(place, ["iperf3", "-s", "-1", "-p", port], through_verbena=False, name="iperf3 server") as server:
        server.wait_listening(port)
        with Process(place, ["iperf3", "-c", place.address[4], "-p", port, "-t", seconds, "-l", size, "-J"],
                     through_verbena=False, name="iperf3 client") as client:
            finish([server, client], PATIENCE)
    received = json.loads(client.stdout)["end"]["sum_received"]
    return Bandwidth(received["bits_per_second"] / 1e9, (_cpu() - before) / (received["bytes"] / 1e9),
                     received["bytes"], None)


def tcp_latency(place, seconds):
    """sockperf's TCP ping-pong: one-way, half of a round trip, of its smallest message (14 bytes)."""
    port = programs.next_port()
    with Process(place, ["sockperf", "server", "--tcp", "-i", place.address[4], "-p", port], through_verbena=False,
                 name="sockperf server") as server:
        server.wait_listening(port)
        with Process(place, ["sockperf", "ping-pong", "--tcp", "-i", place.address[4], "-p", port, "-t", seconds,
                             "-m", "14"], through_verbena=False, name="sockperf client") as client:
            client.wait_success(PATIENCE)
    found = {wanted: re.search(rf"percentile {wanted}\.000 =\s*([\d.]+)", client.stdout) for wanted in ("50", "99")}
    if not all(found.values()):
        raise Failure(f"no percentiles\n{client.evidence()}")
    return Latency(float(found["50"][1]), float(found["99"][1]), None)


def pingpong(place, program, size, rounds):
    """(one-way µs on average, Gb/s of both directions, counters)"""
    port = programs.next_port()
    arguments = [program, "-d", place.device, "-g", str(place.gid_index(4)), "-p", str(port), "-s", str(size), "-n",
                 str(rounds)]
    with Process(place, arguments, name=f"server {program}") as server:
        server.wait_listening(port)
        with Process(place, arguments + [place.address[4]], name=f"client {program}") as client:
            finish([server, client], PATIENCE)
    round_trip = float(programs.expect(client, r"= ([\d.]+) usec/iter", "the time of a round trip")[1])
    return round_trip / 2, 2 * size * 8 / (round_trip * 1e3), _both_stats(server, client)


def loopback(world):
    path = world.open("vb_lo")
    return path.server
