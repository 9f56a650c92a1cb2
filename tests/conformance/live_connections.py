"""Live tests: connections by IP address in numbers, under loss, and with either end killed at each step (dial.c)."""

import re
import signal

import places
import programs
from live import BOTH, live_test
from process import Failure, Process, finish

SECONDS = 180
NOTICED_SECONDS = 10  # within which the death of a peer is known, on a network that loses nothing
GIVEN_UP_SECONDS = 15  # three for the kernel's search of a neighbour, or two askings of a closed port
CLIENT_STEPS = ("resolved", "requested", "established", "sent", "disconnected")
SERVER_STEPS = ("listening", "asked", "accepted", "established", "disconnected")


def start(context, path, role, port, *more, settings=None):
    place = path.server if role == "server" else path.client
    process = Process(place, [context.program("dial"), role, path.server.address[4], port, *more], settings=settings,
                      name=f"dial {role}")
    if role == "server":
        try:
            process.wait_output(r"^listening$")
            programs.wait_reachable(place)
        except BaseException:
            process.kill()
            raise
    return process


def summary(process):
    """The numbers of its "done" line."""
    line = process.wait_output(r"^done (.*)$", 0)[1]
    return {name: float(value) for name, value in re.findall(r"(\w+)=([-\d.]+)", line)}


def run_connections(context, path, count, *more, settings=None):
    """Both ends' numbers: everything was connected, verified and closed, and no descriptor is held any more."""
    port = programs.next_port()
    with start(context, path, "server", port, settings=settings) as server, \
            start(context, path, "client", port, "-n", count, "-l", *more, settings=settings) as client:
        finish([server, client], SECONDS)
    programs.expect_counted((server, client), "packets", count)
    programs.expect_way((server, client))
    for process in (server, client):
        numbers = summary(process)
        kept = 1 if programs.expected_way((server, client)) == "wire" else 3  # a neighbour's socket and process
        if numbers["connections"] != count or numbers["descriptors"] > kept:
            raise Failure(f"{process.name}: expected {count} connections and no descriptor of theirs left\n"
                          + process.evidence())
    return summary(server), summary(client)


@live_test("10,000 connections in a row: each carries its bytes, nothing is held", BOTH)
def in_a_row(context):
    run_connections(context, context.world.own_loopback("row"), 10000, "-m", 1)


@live_test("1,000 connections open at once, on each path")
def at_once(context):
    for name in ("vb_lo", "vb_lo_wire", "veth1500"):
        path = context.world.open(name)
        if path is None:
            raise places.Unavailable(context.world.unavailable[name])
        _, client = run_connections(context, path, 1000, "-a")
        if client["open"] != 1000:
            raise Failure(f"only {client['open']} were open at once on {name}")


@live_test("1,000 connections, 200 at a time, with 5% of packets and of the manager's messages lost")
def churn_under_loss(context):
    for seed in (1, 2):
        run_connections(context, context.world.own_loopback(f"churn{seed}"), 1000, "-w", 200,
                        settings={"VERBENA_FAULTS": f"drop=5%,seed={seed}"})


def kill_at(process, step):
    process.wait_output(f"^at {step}$")
    process.signal(signal.SIGKILL)
    process.wait(5)


@live_test("kill -9 of a client at each step of a connection: the server is told, and serves the next", BOTH)
def kill_client(context):
    path = context.world.own_loopback("client")
    for step in CLIENT_STEPS:
        port = programs.next_port()
        with start(context, path, "server", port) as server:
            with start(context, path, "client", port, "-x", step) as victim:
                kill_at(victim, step)
            if step in ("requested", "established", "sent"):
                server.wait_output(r"^gone: connection 0 ", NOTICED_SECONDS)
            with start(context, path, "client", port, "-l") as client:
                finish([server, client], SECONDS)
    context.world.expect_nothing_left(path)


@live_test("kill -9 of a server at each step of a connection: the client is told, and the next server serves", BOTH)
def kill_server(context):
    path = context.world.own_loopback("server")
    for step in SERVER_STEPS:
        port = programs.next_port()
        victim = Process(path.server, [context.program("dial"), "server", path.server.address[4], port, "-x", step],
                         name="dial server")
        with victim:
            victim.wait_output(r"^listening$")
            with start(context, path, "client", port) as client:
                kill_at(victim, step)
                status = client.wait(NOTICED_SECONDS)
            # By memory all may have been said before the manager's message has come.
            is_early = step == "established" and programs.expected_way((victim, client)) == "local"
            if (status == 0) != (step == "disconnected") and not is_early:
                raise Failure(f"server killed when {step}: the client's status is {status}\n{client.evidence()}")
        run_connections_at(context, path, port)
    context.world.expect_nothing_left(path)


@live_test("a connection to a host that is not there, or has UDP 4791 closed, is given up soon and says why")
def unreachable(context):
    path = context.world.open("veth1500")
    if path is None:
        raise places.Unavailable(context.world.unavailable["veth1500"])
    for address, why in (("10.79.0.77", "the host cannot be reached"), ("fd79::77", "the host cannot be reached"),
                         ("10.79.0.2", "UDP 4791 is closed there"), ("fd79::2", "UDP 4791 is closed there")):
        port = programs.next_port()
        with Process(path.server, [context.program("dial"), "client", address, port], name="dial client") as client:
            if client.wait(GIVEN_UP_SECONDS) == 0:
                raise Failure(f"connected to nobody\n{client.evidence()}")
            client.wait_output(f"connection to {address} port {port}: {why}", 0)
            client.wait_output("RDMA_CM_EVENT_UNREACHABLE", 0)


def run_connections_at(context, path, port):
    with start(context, path, "server", port) as server, start(context, path, "client", port, "-l") as client:
        finish([server, client], SECONDS)
