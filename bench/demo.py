#!/usr/bin/env python3
"""demo: Debian's RDMA programs, unmodified, on this machine without an RDMA NIC, and TCP beside them on the same path."""

import argparse
import os
import pathlib
import sys
import tempfile

import measure
from measure import Failure, places

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZE = 65536
SECONDS = 3


def rows(place):
    """(program, what it does, Gb/s, p50, p99, CPU seconds per GB, counters), one at a time."""
    for program, what in (("ib_write_bw", "WRITE 64 KiB"), ("ib_read_bw", "READ 64 KiB"), ("ib_send_bw", "SEND 64 KiB")):
        done = measure.rdma_bandwidth(place, program, SIZE, SECONDS)
        yield program, what, done.gbps, None, None, done.cpu_per_gb, done.stats
    done = measure.tcp_bandwidth(place, SIZE, SECONDS)
    yield "iperf3", "TCP 64 KiB", done.gbps, None, None, done.cpu_per_gb, None
    done = measure.rdma_latency(place, "ib_write_lat", 8, 20000)
    yield "ib_write_lat", "WRITE 8 B", None, done.p50, done.p99, None, done.stats
    one_way, gbps, stats = measure.pingpong(place, "ibv_rc_pingpong", 4096, 5000)
    yield "ibv_rc_pingpong", "SEND 4 KiB", gbps, one_way, None, None, stats
    done = measure.tcp_latency(place, SECONDS)
    yield "sockperf", "TCP 14 B", None, done.p50, done.p99, None, None


def cell(value, digits):
    return f"{value:.{digits}f}" if value is not None else "-"


def path_taken(stats):
    if stats is None:
        return "TCP, lo"
    sent, datagrams = stats["port_tx_segments"], stats["port_tx_datagrams"]
    return f"UDP 4791, lo: {stats['tx_bytes'] / 1e6:,.0f} MB in {sent:,} packets, {datagrams:,} sends"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=str(ROOT / "build"))
    options = parser.parse_args()
    print("Unmodified programs of Debian's packages, server and client on this machine, over real RoCEv2 packets.")
    print(f"Each runs for a few seconds; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}.\n")
    print(f"{'program':16} {'':13} {'Gb/s':>7} {'one-way us':>11} {'CPU s':>8}  path every byte took")
    print(f"{'':16} {'':13} {'':>7} {'p50':>5} {'p99':>5} {'per GB':>8}", flush=True)
    world = None
    try:
        with tempfile.TemporaryDirectory(prefix="verbena-") as scratch:
            os.chmod(scratch, 0o755)
            world = places.World(places.launcher_for_everyone(options.build, scratch))
            place = measure.loopback(world)
            for program, what, gbps, p50, p99, cpu, stats in rows(place):
                print(f"{program:16} {what:13} {cell(gbps, 1):>7} {cell(p50, 1):>5} {cell(p99, 1):>5} {cell(cpu, 2):>8}  "
                      f"{path_taken(stats)}", flush=True)
    except Failure as failure:
        print(failure)
        return 1
    finally:
        if world:
            world.close()
    print("\nGb/s is what the receiver got; CPU counts both ends. The same by hand, in two terminals:\n"
          "  build/verbena run -- ib_write_bw\n"
          "  build/verbena run -- ib_write_bw 127.0.0.1")
    return 0


if __name__ == "__main__":
    sys.exit(main())
