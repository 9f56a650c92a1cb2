"""Live tests: many processes, many senders to one receiver, a receiver that is stopped or asleep, idle processes, and
steering when the receiver's kernel merges datagrams."""

import contextlib
import re
import signal
import time

import matrix
import peers
import places
import programs
from live import BOTH, live_test
from process import Failure, Process, finish

# Above this a wait must have been for the ack timeout (1.07 s): a busy machine of two cores delays, but not so long.
STALL_MS = 800
STOP_S = 2.0  # of a process whose peer would give it up after 30 ms, were it of another host


@live_test("every operation moves every byte right, on each path and IP version, also between users")
def verified_operations(context):
    world = context.world
    for name in matrix.PATHS:
        path = world.open(name)
        if path is None:
            raise places.Unavailable(world.unavailable[name])
        for version in (4, 6):
            for op, size, count in (("write", 1, 300), ("write", 70001, 200), ("read", 5000, 200), ("read", 262144, 60),
                                    ("send", 1, 300), ("send", 33333, 200), ("atomic", 8, 300)):
                peers.run_verified(context, path, op, "-s", size, "-n", count, "-q", 3, version=version)


@live_test("a server of root and a client of nobody share root's broker", BOTH)
def two_users(context):
    path = context.world.own_loopback("load")
    port = programs.next_port()
    with peers.start_server(context, path.server, port) as server, \
            peers.start_client(context, path, port, "write", "-n", 200, user="nobody") as client:
        finish([server, client], 30)
    programs.expect_way((server, client))


@live_test("64 processes at once", BOTH)
def many_processes(context):
    path = context.world.own_loopback("load")
    gid = str(path.server.gid_index(4))
    with contextlib.ExitStack() as stack:
        servers, clients, ports = [], [], [programs.next_port() for _ in range(32)]

        def start(port, *more):
            arguments = ["ibv_rc_pingpong", "-d", "vb_lo", "-g", gid, "-p", str(port), "-n", "8000", "-e", "-c", *more]
            return stack.enter_context(programs.Process(path.server, arguments))

        servers = [start(port) for port in ports]
        for server, port in zip(servers, ports):
            server.wait_listening(port, 30)
        for port in ports:
            clients.append(start(port, "127.0.0.1"))
            clients[-1].signal(signal.SIGSTOP)  # it waits for the others, lest it ends before they start
        for client in clients:
            client.signal(signal.SIGCONT)
        finish(servers + clients, 60)
        for process in servers + clients:
            programs.expect(process, r"^\d+ bytes in [\d.]+ seconds", "the line with bytes and seconds")
            if "invalid data" in process.stdout:
                raise Failure(f"{process.name} found wrong data\n{process.evidence()}")
        way = programs.expected_way(servers + clients)
        if any(way not in process.ways() for process in servers + clients):  # some may have met late
            raise Failure(f"not all went {way}: {[process.ways() for process in servers + clients]}")


@live_test("incast of 16 ib_write_bw clients to 16 server processes finishes without an ack timeout", BOTH)
def incast_processes(context):
    path = context.world.own_loopback("load")
    with contextlib.ExitStack() as stack:
        # -u 18: an ack timeout of 1.07 s, whose counting would be seen; -n: 64 MB a pair.
        pairs = [stack.enter_context(peers.perftest_pair(path, "ib_write_bw", "-s", 65536, "-n", 1000, "-u", 18))
                 for _ in range(16)]
        everyone = [process for pair in pairs for process in pair]
        finish(everyone, 90)
    programs.expect_way(everyone)
    peers.expect_no_timeouts(everyone)


def incast(context, path, op, size, count):
    """How long one of them waits is not judged: 17 processes share two cores, and one may lose all that it sends at first."""
    port = programs.next_port()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(peers.start_server(context, path.server, port, "-c", 16))
        clients = [stack.enter_context(peers.start_client(context, path, port, op, "-s", size, "-n", count, "-u",
                                                          peers.LONG_TIMEOUT)) for _ in range(16)]
        finish([server] + clients, 90)
    programs.expect_way([server] + clients)
    peers.expect_no_timeouts([server] + clients)


@live_test("incast of 16 clients that WRITE to one process finishes without an ack timeout", BOTH)
def incast_write(context):
    incast(context, context.world.own_loopback("load"), "write", 65536, 400)


@live_test("incast of 16 clients that SEND small messages to one process finishes without an ack timeout", BOTH)
def incast_send(context):
    incast(context, context.world.own_loopback("load"), "send", 64, 4000)


def stopped_receiver(context, op, who):
    """SIGSTOP of one end for 100 ms in mid-run: it costs about that and no ack timeout."""
    path = context.world.own_loopback("load")
    port = programs.next_port()
    with peers.start_server(context, path.server, port) as server, \
            peers.start_client(context, path, port, op, "-s", 65536, "-t", 1.5, "-u", peers.LONG_TIMEOUT) as client:
        client.wait_output("connected")
        time.sleep(0.3)
        target = server if who == "server" else client
        target.signal(signal.SIGSTOP)
        time.sleep(0.1)
        target.signal(signal.SIGCONT)
        finish([server, client], 30)
    programs.expect_way((server, client))
    peers.expect_no_stall([client], [server], STALL_MS)


@live_test("a WRITE's target stopped for 100 ms costs no ack timeout", BOTH)
def stopped_target(context):
    stopped_receiver(context, "write", "server")


@live_test("a READ's requester stopped for 100 ms costs no ack timeout", BOTH)
def stopped_requester(context):
    stopped_receiver(context, "read", "client")


@live_test("either end stopped for seconds is no error to a peer of the same host, whatever its timeout")
def stopped_for_long(context):
    path = context.world.own_loopback("load")
    for op in ("write", "read", "send", "atomic"):
        port = programs.next_port()
        with peers.start_server(context, path.server, port) as server, \
                peers.start_client(context, path, port, op, "-s", 65536, "-t", 1, "-u", 8) as client:
            client.wait_output("connected")
            for target in (server, client):
                time.sleep(0.2)
                target.signal(signal.SIGSTOP)
                time.sleep(STOP_S)
                target.signal(signal.SIGCONT)
            finish([server, client], 30)
        programs.expect_way((server, client))


@live_test("one-sided operations proceed while the target sleeps in pause()", BOTH)
def sleeping_target(context):
    path = context.world.own_loopback("load")
    for op in ("write", "read", "atomic"):
        port = programs.next_port()
        with peers.start_server(context, path.server, port, "-z") as server, \
                peers.start_client(context, path, port, op, "-n", 200) as client:
            client.wait_output(r"^done ", 20)
            server.signal(signal.SIGUSR1)
            finish([server, client], 10)


@live_test("an idle process with connected QPs uses no CPU", BOTH)
def idle(context):
    path = context.world.own_loopback("load")
    port = programs.next_port()
    with peers.start_server(context, path.server, port) as server, \
            peers.start_client(context, path, port, "idle", "-q", 16) as client:
        client.wait_output("connected")
        time.sleep(0.5)
        before = [process.cpu_seconds() for process in (server, client)]
        seconds = 4.0
        time.sleep(seconds)
        used = [process.cpu_seconds() - was for process, was in zip((server, client), before)]
        if max(used) > 0.025:  # more than two ticks, which the sampling itself may show
            raise Failure(f"CPU seconds used in {seconds:g} s of idling: server {used[0]:.2f}, client {used[1]:.2f}")


def merge_datagrams(place):
    """Make the receiving kernel's GRO merge whatever it can: single datagrams from the stack, NAPI that waits for more."""
    interface = place.device.removeprefix("vb_")
    place.run("ethtool", "-K", interface, "tso", "off", "gro", "on")
    device = f"/sys/class/net/{interface}"
    place.run("sh", "-c", f"echo 200000 >{device}/gro_flush_timeout && echo 2 >{device}/napi_defer_hard_irqs")
    place.run("sh", "-c", f"echo 1 >{device}/threaded")


@live_test("steering stays right when the receiver's kernel merges datagrams (veth, tso off, gro on, threaded NAPI)")
def steering(context):
    try:
        path = context.world.veth("gro", 1500, merge_datagrams)
    except Exception as reason:
        raise places.Unavailable(f"veth with gro and threaded NAPI: {reason}") from None
    for settings in ({}, {"VERBENA_TRAINS": "off"}):
        everyone, clients = [], []
        with contextlib.ExitStack() as stack:
            for _ in range(2):
                port = programs.next_port()
                server = stack.enter_context(peers.start_server(context, path.server, port, settings=settings))
                client = stack.enter_context(peers.start_client(context, path, port, "write", "-s", 64, "-n", 20000, "-q",
                                                                2, settings=settings))
                everyone += [server, client]
                clients.append(client)
            finish(everyone, 60)
        strays = peers.sum_stats(everyone, "port_rx_mis_steered")
        if strays:
            raise Failure(f"{strays} packets went to another process's slot with {settings or 'the default settings'}")


@live_test("many QPs: ib_write_bw -q 1000", BOTH)
def many_qps(context):
    path = context.world.own_loopback("load")
    with peers.perftest_pair(path, "ib_write_bw", "-q", 1000, "-s", 4096, "-n", 16, "-t", 8) as (server, client):
        finish([server, client], 60)
    programs.expect_way((server, client))
    if not re.search(r"^\s*4096\s+\d+\s", client.stdout, re.M):
        raise Failure(f"no row of results\n{client.evidence()}")


def open_queues(context, path, count):
    """(microseconds of CPU time each, waits) of that many completion queues with channels."""
    with Process(path.client, [context.program("queues"), count], name=f"{count} queues") as process:
        process.wait_success(30)
    each, waits = programs.expect(process, r"^each=([\d.]+) waits=(\d+)$", "its figures").groups()
    return float(each), int(waits)


@live_test("500 completion queues with channels take no longer each than 50, and wait for nothing")
def many_queues(context):
    path = context.world.own_loopback("queues")
    rounds = [(open_queues(context, path, 50), open_queues(context, path, 500)) for _ in range(5)]
    few = min(each for (each, _), _ in rounds)
    many = min(each for _, (each, _) in rounds)
    waits = min(waits for _, (_, waits) in rounds)
    if many > 1.5 * few or waits:
        raise Failure(f"50 took {few} us each, 500 {many} us each and {waits} waits")


def connecting_seconds(context, path, count):
    """CPU time of both processes until so many QPs are connected."""
    port = programs.next_port()
    with peers.start_server(context, path.server, port, "-s", 8, "-q", count) as server, \
            peers.start_client(context, path, port, "idle", "-s", 8, "-q", count) as client:
        client.wait_output("connected", 60)
        return sum(process.scheduled_seconds()[0] for process in (server, client))


@live_test("1,000 connections more between two processes take no longer than the first 1,000", BOTH)
def many_connections(context):
    path = context.world.own_loopback("connections")
    rounds = [[connecting_seconds(context, path, count) for count in (1, 1001, 2001)] for _ in range(3)]
    one, first, all_of_them = map(min, zip(*rounds))
    if all_of_them - first > 1.5 * (first - one):
        raise Failure(f"the first 1,000 took {(first - one) * 1e3:.1f} ms of CPU time, 1,000 more {(all_of_them - first) * 1e3:.1f}")
