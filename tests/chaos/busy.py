"""Programs that spin on cores that others want, too: two pairs of ucx_perftest and a compiler on two cores, over Verbena and over
TCP in turn, for as long as is asked."""

import contextlib
import pathlib
import re
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
COMPILING = "while :; do cc -O2 -S -o /dev/null -I{0}/src -I{0}/tests -D_GNU_SOURCE {1} 2>/dev/null; done"


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
            return stack.enter_context(Process(place, words, settings=settings_of(place, over_verbena), through_verbena=over_verbena,
                                               name=name))

        servers, clients = [], []
        for number in range(PAIRS):
            port = programs.next_port()
            words = ["ucx_perftest", "-p", port]
            servers.append(start(arena.hosts[1], words, f"server {number}"))
            servers[-1].wait_listening(port, RUN_SECONDS)
            clients.append(start(arena.hosts[0], [*words, arena.address(1), "-t", "tag_bw", "-s", SIZE, "-n", COUNT, "-w", 200],
                                 f"client {number}"))
        finish([*servers, *clients], RUN_SECONDS)
        if over_verbena:
            programs.expect_counted((*servers, *clients), "bytes", PAIRS * SIZE * COUNT)
        return sum(map(gigabits, clients))


def run(context, arena, seconds):
    """Each way in turn; at least once."""
    for program in ("ucx_perftest", "cc"):
        if not shutil.which(program):
            raise places.Unavailable(f"{program} is not installed")
    root = SOURCE.parent.parent.parent
    moved, end, rounds = {True: 0.0, False: 0.0}, time.monotonic() + seconds, 0
    with Process(arena.hosts[0], ["sh", "-c", COMPILING.format(root, SOURCE)], through_verbena=False, name="compiler"):
        while rounds == 0 or time.monotonic() < end:
            for over_verbena in (True, False) if rounds % 2 else (False, True):
                moved[over_verbena] += run_pairs(arena, over_verbena)
            rounds += 1
            context.report.progress(f"round {rounds}: {moved[True] / rounds:.2f} Gb/s, TCP {moved[False] / rounds:.2f}", 60)
    ratio = moved[True] / moved[False]
    print(f"  {rounds} rounds of {PAIRS} pairs and a compiler: {moved[True] / rounds:.2f} Gb/s over Verbena, {moved[False] / rounds:.2f} over "
          f"TCP: {ratio:.2f}", flush=True)
    if ratio < LEAST:
        raise Failure(f"{ratio:.2f} of TCP's throughput; {LEAST} is wanted")
