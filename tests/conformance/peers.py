"""Pairs of processes for the live tests: our own verifying client (peer.c) and perftest running in the background."""

import contextlib
import re

import programs
from process import Failure, Process, finish

LONG_TIMEOUT = "18"  # local ack timeout code: 1.07 s, so that a wait for it cannot be mistaken for anything else


def peer_arguments(context, place, port, *more, version=4, user="root"):
    return [context.program("peer"), "-d", place.device, "-g", str(place.gid_index(version, user)), "-p", str(port), *map(str, more)]


def start_server(context, place, port, *more, user="root", settings=None, version=4):
    server = Process(place, peer_arguments(context, place, port, *more, "server", version=version, user=user), user, settings,
                     name=f"peer server {port}")
    try:
        server.wait_listening(port)
    except BaseException:
        server.kill()
        raise
    return server


def start_client(context, path, port, op, *more, user="root", settings=None, version=4):
    arguments = peer_arguments(context, path.client, port, "-o", op, *more, "client", path.server.address[4],
                               version=version, user=user)
    return Process(path.client, arguments, user, settings, name=f"peer client {port} {op}")


def run_verified(context, path, op, *more, user="root", settings=None, seconds=30, version=4):
    """One verifying pair from beginning to end; returns (server, client)."""
    port = programs.next_port()
    with start_server(context, path.server, port, user=user, settings=settings, version=version) as server:
        with start_client(context, path, port, op, *more, user=user, settings=settings, version=version) as client:
            finish([server, client], seconds)
    client.wait_output(r"^done ", 0)
    programs.expect_way((server, client))
    return server, client


def longest_ms(client):
    """The longest time that a finished client waited for a completion."""
    return float(re.search(r"longest_ms=([\d.]+)", client.stdout)[1])


@contextlib.contextmanager
def perftest_pair(path, program, *more, user="root", settings=None):
    """Server and client of a perftest program, running; killed at the end if they still do."""
    port = programs.next_port()

    def arguments(place):
        return [program, "-d", place.device, "-x", str(place.gid_index(4, user)), "-p", str(port), "-F", *map(str, more)]

    with Process(path.server, arguments(path.server), user, settings, name=f"server {program} {port}") as server:
        server.wait_listening(port)
        with Process(path.client, arguments(path.client) + [path.server.address[4]], user, settings,
                     name=f"client {program} {port}") as client:
            yield server, client


def sum_stats(processes, counter):
    total = 0
    for process in processes:
        values = process.stats()
        if not values:
            raise Failure(f"{process.name} printed no VERBENA_STATS line\n{process.evidence()}")
        total += values.get(counter, 0)
    return total


def expect_no_timeouts(processes):
    timeouts = sum_stats(processes, "timeouts")
    if timeouts:
        raise Failure(f"{timeouts} local ack timeouts\n" + "\n".join(process.evidence() for process in processes[:4]))


def expect_no_stall(clients, servers, limit_ms):
    """Nobody slept for a local ack timeout: neither counted nor visible as a wait for a completion."""
    for client in clients:
        if longest_ms(client) > limit_ms:
            raise Failure(f"{client.name} waited {longest_ms(client):.0f} ms for a completion, more than {limit_ms} ms\n"
                          + client.evidence())
    expect_no_timeouts([*clients, *servers])
