"""Live tests: many processes of one host that share memory, all with all, also when the broker dies while they meet."""

import os
import signal
import time

import places
from live import live_test
from process import Failure, Process

PROCESSES = 30
SECONDS = 90  # which a machine with much else to do may take


def crowd(context, path):
    return Process(path.server, [context.program("crowd"), PROCESSES], name="crowd")


def expect_memory(process):
    strangers = process.stderr.count("goes over the wire")
    if strangers or process.ways() != {"local"}:
        raise Failure(f"{strangers} times one of two took the other for a stranger\n{process.evidence()}")


@live_test(f"{PROCESSES} processes, each connected to each, share memory")
def all_with_all(context):
    path = context.world.own_loopback("crowd")
    with crowd(context, path) as process:
        process.wait_success(SECONDS)
        expect_memory(process)
    context.world.expect_nothing_left(path)


def kill_brokers(path, seen):
    """Both processes, as soon as there are two that were not seen before."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = places.brokers(path.server)
        if len(found) == 2 and not seen & set(found):
            break
        time.sleep(0.01)
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return seen | set(found)


@live_test(f"{PROCESSES} processes that meet while both broker processes die, again and again, share memory")
def broker_dies_amid_introductions(context):
    path = context.world.own_loopback("crowd")
    with crowd(context, path) as process:
        seen = set()
        for _ in range(4):
            time.sleep(0.15)
            if process.status is None:
                seen = kill_brokers(path, seen)
        process.wait_success(SECONDS)
        expect_memory(process)
    context.world.expect_nothing_left(path)
