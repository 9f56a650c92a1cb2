"""Rounds of what stands on verbs, over the wire, beside TCP as these programs do it themselves; and of connections."""

import measure
import stacks

KIB = 1024
COUNT = 1000  # connections at once


def ucx(bench):
    latency = [stacks.ucx(bench.wire, "tag_lat", 8, 10000, way).us for way in ("verbena", "tcp")]
    bandwidth = [stacks.ucx(bench.wire, "tag_bw", 64 * KIB, 10000, way).gbps for way in ("verbena", "tcp")]
    bench.figures.compare("ucx_tag_lat_8_us", "ucx_perftest tag_lat 8 B", "us", *latency)
    bench.figures.compare("ucx_tag_bw_65536_gbps", "ucx_perftest tag_bw 64 KiB", "Gb/s", *bandwidth)


def libfabric(bench):
    stacks.prepare_fabric(bench.wire.server)
    latency = [stacks.fabric(bench.wire, 64, 5000, over_verbena)[0] for over_verbena in (True, False)]
    bandwidth = [stacks.fabric(bench.wire, 64 * KIB, 2000, over_verbena)[1] for over_verbena in (True, False)]
    bench.figures.compare("fi_pingpong_64_us", "fi_pingpong 64 B, one way", "us", *latency)
    bench.figures.compare("fi_pingpong_65536_gbps", "fi_pingpong 64 KiB", "Gb/s", *bandwidth)


def mpi(bench):
    stacks.prepare_fabric(bench.wire.server)
    program = measure.built(bench.build, "bench/allreduce")
    for size, label in ((KIB, "1 KiB"), (4096 * KIB, "4 MiB")):
        took = {way: stacks.allreduce(bench.wire, program, way, size) for way in stacks.MPI_WAYS}
        bench.figures.compare(f"mpi_allreduce_{size}_us", f"MPI_Allreduce {label}", "us", took["ucx"], took["tcp"])


def connections(bench):
    phases, seconds = stacks.cmtime(bench.wire, COUNT)
    add = bench.figures.add
    add("connections_per_second", COUNT / seconds, f"cmtime, {COUNT:,} connections at once, made and ended", "/s")
    for phase, took in phases.items():
        add(f"cmtime_{phase.replace(' ', '_')}_us", took, f"cmtime, {phase}, each", "us")
    memory = stacks.connection_memory(bench.wire, measure.built(bench.build, "tests/conformance/dial"), COUNT)
    for end, resident in zip(("server", "client"), memory):
        add(f"bytes_per_connection_{end}", resident, f"memory of an open connection and its buffers, {end}", "bytes")


ROUNDS = {"ucx": ucx, "libfabric": libfabric, "mpi": mpi, "connections": connections}
