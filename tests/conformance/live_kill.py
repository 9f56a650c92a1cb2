"""Live tests: any process dies by kill -9 in the middle of ib_write_bw; the others go on, and nothing is left behind."""

import os
import signal
import time

import peers
import places
import programs
from live import BOTH, live_test
from process import Failure, Process, finish

RUN_SECONDS = 6.0  # how long the bystanders run
START_SECONDS = 2.0  # within which perftest has measured the clock and shaken hands


def with_bystander(context, path, strike):
    """Runs a verifying pair and an ib_write_bw pair; strike(server, client) once both are at it; the verifying pair must
    finish well, a new pair must work, and nothing may be left."""
    port = programs.next_port()
    with peers.start_server(context, path.server, port) as server, \
            peers.start_client(context, path, port, "write", "-s", 65536, "-t", RUN_SECONDS, "-u", "18") as client, \
            peers.perftest_pair(path, "ib_write_bw", "-D", "20", "-s", "65536") as (victim_server, victim_client):
        client.wait_output("connected")
        time.sleep(START_SECONDS)
        for process in (server, client, victim_server, victim_client):
            if process.status is not None:
                raise Failure(f"{process.name} ended before the blow\n{process.evidence()}")
        strike(victim_server, victim_client)
        finish([server, client], RUN_SECONDS * 10)
        peers.run_verified(context, path, "read", "-s", 65536, "-n", 100)
    context.world.expect_nothing_left(path)


@live_test("kill -9 of a client in ib_write_bw: others go on, nothing is left", BOTH)
def kill_client(context):
    def strike(server, client):
        client.signal(signal.SIGKILL)
        server.wait(20)

    with_bystander(context, context.world.own_loopback("kill"), strike)


@live_test("kill -9 of a server in ib_write_bw: the client is told why, others go on, nothing is left", BOTH)
def kill_server(context):
    def strike(server, client):
        server.signal(signal.SIGKILL)
        if client.wait(20) == 0:
            raise Failure(f"the client of a killed server reports success\n{client.evidence()}")
        is_local = programs.expected_way((server, client)) == "local"
        client.wait_output(r"the peer's process, on this host, has ended; peer .* qpn" if is_local else
                           r"retry exceeded.* to .*qpn", 0)

    with_bystander(context, context.world.own_loopback("kill"), strike)


def broker_pair(path):
    found = places.brokers(path.server)
    if len(found) != 2:
        raise Failure(f"expected a broker of two processes, parent and worker, found {found}")
    return found


def wait_two_brokers(path, dead, seconds=5):
    deadline = time.monotonic() + seconds
    while True:
        found = places.brokers(path.server)
        if len(found) == 2 and not set(dead) & set(found):
            return
        if time.monotonic() > deadline:
            raise Failure(f"the broker was not made whole within {seconds} s: processes {found}, killed {dead}")
        time.sleep(0.05)


def strike_broker(context, choose):
    """Kill the broker processes that choose picks of (parent, worker)."""
    path = context.world.own_loopback("kill")

    def strike(server, client):
        dead = choose(*broker_pair(path))
        for pid in dead:
            os.kill(pid, signal.SIGKILL)
        # A newcomer finds a broker or starts one, also while connected QPs go on.
        peers.run_verified(context, path, "write", "-s", 65536, "-n", 100)
        wait_two_brokers(path, dead)
        for process in (server, client):
            if process.status is not None:
                raise Failure(f"{process.name} ended when the broker died\n{process.evidence()}")

    with_bystander(context, path, strike)


@live_test("the broker runs on every core, whatever the program that started it is bound to")
def broker_cores(context):
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        raise places.Unavailable("there is one core")
    path = context.world.own_loopback("kill")
    port = programs.next_port()
    with Process(path.server, ["taskset", "-c", str(min(cores)), "ibv_rc_pingpong", "-g", "0", "-p", port]) as process:
        process.wait_listening(port)
        for pid in broker_pair(path):
            if os.sched_getaffinity(pid) != cores:
                raise Failure(f"process {pid} of the broker has cores {os.sched_getaffinity(pid)}, not {cores}")


@live_test("kill -9 of the broker's worker: others go on, it is replaced, nothing is left", BOTH)
def kill_broker_worker(context):
    strike_broker(context, lambda parent, worker: [worker])


@live_test("kill -9 of the broker's parent: others go on, nothing is left", BOTH)
def kill_broker_parent(context):
    strike_broker(context, lambda parent, worker: [parent])


@live_test("kill -9 of both broker processes at once: connected QPs go on, newcomers work, nothing is left", BOTH)
def kill_broker_both(context):
    strike_broker(context, lambda parent, worker: [parent, worker])
