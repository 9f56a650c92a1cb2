"""Programs that spin on cores that others want, too: two pairs of ucx_perftest and a compiler on two cores, over Verbena and over
TCP in turn, for as long as is asked."""

import contextlib
import os
import pathlib
import shutil
import time

import places
import programs
from process import Failure, Process, finish

PAIRS = 2
SIZE, COUNT = 65536, 20000  # of a run, a few seconds
RUN_SECONDS = 240           # beyond which it is a hang
LEAST = 0.7                 # of TCP's throughput
SOURCE = pathlib.Path(__file__).resolve().with_name("talk.c")
COMPILER = ["cc", "-O2", "-S", "-o", "/dev/null", "-D_GNU_SOURCE", SOURCE]


def on_two_cores(words):
    cores = sorted(os.sched_getaffinity(0))[:2]
    return ["taskset", "-c", ",".join(map(str, cores)), *words]


def settings_of(place, over_verbena):
    if not over_verbena:
        return {"UCX_TLS": "tcp", "UCX_NET_DEVICES": place.device.removeprefix("vb_")}
    return {"UCX_TLS": "rc_verbs,ud_verbs:aux", "UCX_NET_DEVICES": f"{place.device}:1", "UCX_IB_GID_INDEX": str(place.gid_index(4))}


def gigabits(client):
    """Of the average bandwidth in MiB/s that ucx_perftest says at the end."""
    row = programs.expect(client, r"^Final:\s+\d+\s+(?:[\d.]+\s+){3}([\d.]+)\s", "the final row")
    return float(row[1]) * (1 << 20) * 8 / 1e9


def run_pairs(arena, over_verbena):
    """Gb/s of all pairs together, which run at once."""
    with contextlib.ExitStack() as stack:
        def start(place, words, name):
            return stack.enter_context(Process(place, on_two_cores(words), settings=settings_of(place, over_verbena), through_verbena=over_verbena,
                                               name=name))

        ports = [programs.next_port() for _ in range(PAIRS)]
        servers = [start(arena.hosts[1], ["ucx_perftest", "-p", port], f"server at {port}") for port in ports]
        for server, port in zip(servers, ports):
            server.wait_listening(port, RUN_SECONDS)
        clients = [start(arena.hosts[0], ["ucx_perftest", "-p", port, arena.address(1), "-t", "tag_bw", "-s", SIZE, "-n", COUNT, "-w", 200],
                         f"client of {port}") for port in ports]
        finish([*servers, *clients], RUN_SECONDS)
        if over_verbena:
            programs.expect_counted((*servers, *clients), "bytes", PAIRS * SIZE * COUNT)
        return sum(map(gigabits, clients))


def run(context, arena, seconds):
    """Each way in turn; at least once."""
    for program in ("ucx_perftest", "cc", "taskset"):
        if not shutil.which(program):
            raise places.Unavailable(f"{program} is not installed")
    with Process(arena.hosts[0], COMPILER, through_verbena=False, name="compiler") as once:
        once.wait_success(RUN_SECONDS)
    compiling = f"while {' '.join(map(str, COMPILER))}; do :; done"
    moved, end, rounds = {True: 0.0, False: 0.0}, time.monotonic() + seconds, 0
    with Process(arena.hosts[0], on_two_cores(["sh", "-c", compiling]), through_verbena=False, name="compiler") as compiler:
        while rounds == 0 or time.monotonic() < end:
            for over_verbena in (True, False) if rounds % 2 else (False, True):
                moved[over_verbena] += run_pairs(arena, over_verbena)
            rounds += 1
            context.report.progress(f"round {rounds}: {moved[True] / rounds:.2f} Gb/s, TCP {moved[False] / rounds:.2f}", 60)
        if compiler.status is not None:
            raise Failure(f"the compiler ended\n{compiler.evidence()}")
    ratio = moved[True] / moved[False]
    print(f"  {rounds} rounds of {PAIRS} pairs and a compiler: {moved[True] / rounds:.2f} Gb/s over Verbena, {moved[False] / rounds:.2f} over "
          f"TCP: {ratio:.2f}", flush=True)
    if ratio < LEAST:
        raise Failure(f"{ratio:.2f} of TCP's throughput; {LEAST} is wanted")
