#!/usr/bin/env python3
"""demo: Debian's RDMA programs, unmodified, on this machine without an RDMA NIC: as two processes of one host talk by
themselves, over the wire, and TCP beside them."""

import argparse
import collections
import dataclasses
import os
import pathlib
import signal
import sys
import tempfile

import ends as between
import measure
from measure import Failure, places

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZE = 65536
SECONDS = 2
COLUMNS = ("same host", "wire", "TCP")
BANDWIDTHS = (("ib_write_bw", "WRITE 64 KiB"), ("ib_read_bw", "READ 64 KiB"), ("ib_send_bw", "SEND 64 KiB"))


def rows(same_host, wire, counted):
    """(program, what it does, unit, digits, a value for each column), as they come; one measurement at a time. What goes
    over Verbena is summed up in counted, a Counter for each path."""
    paths = list(zip((same_host, wire), counted))

    def over_verbena(run):
        done = []
        for ends, total in paths:
            *values, stats = run(ends)
            total.update(stats)
            done.append(values)
        return done

    for program, what in BANDWIDTHS:
        done = over_verbena(lambda ends, name=program: select(measure.rdma_bandwidth(ends, name, SIZE, SECONDS)))
        done.append(select(measure.tcp_bandwidth(wire, SIZE, SECONDS)))
        yield program, what, "Gb/s", 1, [gbps for gbps, *_ in done]
        yield "", "", "CPU s/GB", 2, [cpu for _, cpu, *_ in done]
    done = over_verbena(lambda ends: measure.rdma_latency(ends, "ib_write_lat", 8, 20000))
    done.append(measure.tcp_latency(wire, SECONDS))
    yield "ib_write_lat", "WRITE 8 B", "us p50", 2, [p50 for p50, *_ in done]
    yield "", "", "us p99", 2, [p99 for _, p99, *_ in done]
    done = over_verbena(lambda ends: measure.pingpong(ends, "ibv_rc_pingpong", 4096, 5000))
    yield "ibv_rc_pingpong", "SEND 4 KiB", "us mean", 2, [us for us, _ in done] + [None]


def select(bandwidth):
    return bandwidth.gbps, bandwidth.cpu_per_gb, bandwidth.stats


def cell(value, digits):
    return f"{value:.{digits}f}" if value is not None else "-"


def line(program, what, unit, cells):
    return f"{program:16} {what:13} {unit:9}" + "".join(f" {text:>10}" for text in cells)


def path_taken(counts):
    """What the counters of all its programs say."""
    moved = f"{counts['tx_bytes'] / 1e6:,.0f} MB"
    return f"{moved} in {counts['port_tx_segments']:,} packets to UDP port 4791, by {counts['port_tx_datagrams']:,} sends"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=str(ROOT / "build"))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was made is removed
    print("Unmodified programs of Debian's packages, server and client on this machine, each on a core of its own: as two\n"
          "processes of one host talk by themselves, over the wire (VERBENA_LOCAL=off), and iperf3 and sockperf over TCP.")
    print(f"Each runs for a few seconds; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}.\n")
    print(line("", "", "", COLUMNS), flush=True)
    world, counted = None, [collections.Counter(), collections.Counter()]
    try:
        with tempfile.TemporaryDirectory(prefix="verbena-") as scratch:
            os.chmod(scratch, 0o755)
            world = places.World(places.launcher_for_everyone(options.build, scratch))
            same_host = measure.loopback(world).pinned(between.two_cores())
            wire = dataclasses.replace(same_host, settings=between.WIRE)
            for program, what, unit, digits, values in rows(same_host, wire, counted):
                print(line(program, what, unit, [cell(value, digits) for value in values]), flush=True)
    except Failure as failure:
        print(failure)
        return 1
    finally:
        if world:
            world.close()
    print(f"\nSame host: {path_taken(counted[0])}.\nWire: {path_taken(counted[1])}.\n"
          "Gb/s is what the receiver got; CPU counts both ends; us is one way. The same by hand, in two terminals:\n"
          "  build/verbena run -- ib_write_bw\n"
          "  build/verbena run -- ib_write_bw 127.0.0.1")
    return 0


if __name__ == "__main__":
    sys.exit(main())
