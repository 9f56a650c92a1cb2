"""Exact scenarios: one thing that went wrong once each, to be run alone (--only NAME)."""

import collections
import contextlib
import pathlib
import random
import re
import shutil
import signal
import time

import actors
import busy
import checks
import churn
import eavesdrop
import places
import programs
from arena import Arena, send_signal
from process import Failure, Process

Scenario = collections.namedtuple("Scenario", "name about run is_short is_long")
SCENARIOS = []
HOSTILE, NEIGHBOUR = "5002", "5001"
CMTIME_CONNECTIONS, CMTIME_SECONDS = 10000, 240
CROWD_SECONDS = 600
SHORT_STOP_S, LONG_STOP_S = 2, 9  # a connection is given up after 4.3 s


def scenario(name, is_short=True, is_long=False):
    """is_short: also in the short form; is_long: only where it is named."""
    def enter(function):
        SCENARIOS.append(Scenario(name, function.__doc__.split("\n", 1)[0], function, is_short, is_long))
        return function
    return enter


@contextlib.contextmanager
def stage(context, label, is_shared=False):
    """An arena in which at the end nothing may be left; actors are closed with it."""
    with Arena(context, label, is_shared) as arena, contextlib.ExitStack() as stack:
        yield arena, lambda actor: stack.enter_context(contextlib.closing(actor))
        stack.close()
        arena.expect_nothing_left()


def flooded(context, arena, kind, rate, seconds, port):
    """A flood from host a to host b, started."""
    arguments = [context.program("flood"), "--kind", kind, "--rate", rate, "--seconds", seconds, "--port", port,
                 "--spoof-random", arena.address(1)]
    return Process(arena.hosts[0], arguments, through_verbena=False)


def listening(context, arena, stays, number=1, user="root", settings=None):
    server = stays(actors.talk_server(context, arena.hosts[number], f"server at {'ab'[number]}", user, settings))
    server.process.wait_output(r"^listening$", 15)
    return server


def ends_well(*talkers):
    for talker in talkers:
        talker.ask_to_end()
        talker.await_end(checks.END_SECONDS)
    checks.expect_no_problems(talkers)


@scenario("flood-blocked-listener")
def flood_blocked_listener(context):
    """6 s of forged requests, 20,000 a second, the listener busy elsewhere at moments: it is not deaf afterwards"""
    with stage(context, "deaf") as (arena, stays):
        server = listening(context, arena, stays)
        checks.hears(context, server, arena.hosts[0])
        with flooded(context, arena, "req", 20000, 6, server.port) as flood:
            context.report.figure("floods")
            for _ in range(6):
                time.sleep(0.5)
                server.stop(0.4)
                time.sleep(0.4)
                server.go_on()
            flood.wait_success(20)
        time.sleep(1)
        checks.hears(context, server, arena.hosts[0])
        ends_well(server)


@scenario("flood-honest-connect", is_short=False)
def flood_honest_connect(context):
    """35,000 requests or 51,000 discovery MADs a second: an honest client is connected within 5 s meanwhile"""
    with stage(context, "honest") as (arena, stays):
        server = listening(context, arena, stays)
        known = stays(actors.talk_client(context, arena.hosts[0], server, "known client", messages=2))
        checks.gets_through(known)
        for kind, rate in (("req", 35000), ("discovery", 51000)):
            with flooded(context, arena, kind, rate, 8, server.port) as flood:
                time.sleep(1)
                with checks.dial(context, arena.hosts[0], server) as client:
                    client.wait(30)
                    took = checks.connect_ms(client)
                    context.report.worst("worst_connect_ms", took or 30000)
                    if took is None or took > 5000:
                        raise Failure(f"under {rate} of {kind} a second an honest client was connected after {took} "
                                      f"ms\n{client.evidence()}\n{server.process.evidence()}")
                flood.wait_success(20)
        ends_well(known, server)


@scenario("silent-connections")
def silent_connections(context):
    """600 connections to the broker of one user who says nothing: a newcomer gets in, or is told, at once"""
    with stage(context, "silent", is_shared=True) as (arena, stays):
        server = listening(context, arena, stays)
        before = stays(actors.talk_client(context, arena.hosts[0], server, "client from before"))
        checks.gets_through(before)
        command = [context.program("hostile"), "--only", "silence", "--seconds", 8]
        with Process(arena.hosts[0], command, HOSTILE, through_verbena=False) as hostile:
            time.sleep(1)
            began = time.monotonic()
            with checks.dial(context, arena.hosts[0], server, NEIGHBOUR) as client:
                status = client.wait(30)
                took = time.monotonic() - began
                if took > checks.HEARD_MS / 1000 + 1:
                    raise Failure(f"the newcomer's end came after {took:.1f} s, with status {status}\n"
                                  + client.evidence())
                if status and not client.stderr.strip():
                    raise Failure(f"the newcomer was not told why\n{client.evidence()}")
            checks.gets_through(before)
            hostile.wait_success(20)
        checks.hears(context, server, arena.hosts[0], NEIGHBOUR)
        ends_well(before, server)


def told_in_the_end(client, seconds):
    """How many failures its calls have told of, once no more come."""
    told, until = -1, time.monotonic() + seconds
    while (now := client.status().get("told", 0)) != told:
        if time.monotonic() > until:
            raise Failure(f"{seconds} s after the broker's death calls still fail\n" + client.process.evidence())
        told = now
        time.sleep(1)
    return told


@scenario("resolve-burst-broker-killed")
def resolve_burst_broker_killed(context):
    """Both broker processes are killed in a burst of rdma_resolve_addr, three times: the process's calls work again"""
    with stage(context, "burst") as (arena, stays):
        server = listening(context, arena, stays)
        for attempt in range(3):
            client = stays(actors.talk_client(context, arena.hosts[0], server, f"client {attempt}", at_once=1000,
                                              messages=1, period_ms=1))
            client.process.wait_output(r"^dialling$", 15)
            time.sleep(0.01 + 0.03 * attempt)
            for pid in arena.brokers(0):
                send_signal(pid, signal.SIGKILL)
            context.report.figure("kills", 2)
            time.sleep(2)
            told = told_in_the_end(client, 30)
            checks.gets_through(client, by=20, seconds=30)
            since = client.status().get("told", 0) - told
            if since > 2:
                raise Failure(f"long after the broker's death {since:.0f} calls more failed\n"
                              + client.process.evidence())
            ends_well(client)
        ends_well(server)


def hostile_arguments(context, arena, seconds, capture):
    arguments = [context.program("hostile"), "--seconds", seconds, "--seed", context.seed]
    for number in (0, 1):
        arguments += ["--peer", arena.address(number)]
    for here, there, qpn in eavesdrop.connections(pathlib.Path(capture).read_bytes())[:64]:
        arguments += ["--id", f"{here:x}:{there:x}:{qpn:x}"]
    return arguments


def beside_a_hostile(context, arena, stays, hostile_user, seconds, capture):
    """RC flows of root and of another user, and connections, beside the hostile program; what each of them says."""
    a, b = arena.hosts
    server = listening(context, arena, stays)
    lasting = stays(actors.talk_client(context, a, server, "lasting client", NEIGHBOUR, {"VERBENA_PCAP": str(capture)},
                                       messages=0, period_ms=20))
    checks.gets_through(lasting)
    pairs = [stays(actors.Pair(context, f"flow of {user}", b, a, random.Random(f"{context.seed}/{user}"), user,
                               seconds=seconds + 3, again=False)) for user in ("root", NEIGHBOUR)]
    tick_until(lambda: all(pair.is_connected() for pair in pairs), pairs, 10)
    before = arena.brokers(0)
    command = hostile_arguments(context, arena, seconds, capture)
    with Process(a, command, hostile_user, through_verbena=False) as hostile:
        context.report.figure("hostiles")
        tick_until(lambda: hostile.status is not None, pairs + [lasting], seconds + 20)
        hostile.wait_success(0)
    for pair in pairs:
        pair.await_end(60)
    return server, lasting, pairs, hostile, before


def tick_until(is_so, those, seconds):
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        for actor in those:
            actor.tick(time.monotonic())
        time.sleep(0.05)


def capture_file(context):
    """Writable by another user."""
    file = pathlib.Path(context.directory) / f"capture-{time.monotonic_ns()}.pcap"
    file.touch()
    file.chmod(0o666)
    return file


@scenario("hostile-neighbour")
def hostile_neighbour(context):
    """A hostile user beside flows of two others under root's broker: reads nothing, ends nothing"""
    capture = capture_file(context)
    with stage(context, "hostile", is_shared=True) as (arena, stays):
        server, lasting, pairs, hostile, before = beside_a_hostile(context, arena, stays, HOSTILE, 6, capture)
        found = []
        for check in (lambda: checks.expect_nothing_foreign(hostile),
                      lambda: expect_flows_unhurt(pairs, lasting),
                      lambda: expect_port_rule(hostile),
                      lambda: expect_same_brokers(arena, before),
                      lambda: checks.hears(context, server, arena.hosts[0], NEIGHBOUR),
                      lambda: checks.gets_through(lasting)):
            try:
                check()
            except Failure as failure:
                found.append(str(failure))
        if found:
            raise Failure(f"{len(found)} promises were broken\n" + "\n".join(found))
        ends_well(lasting, server)
    capture.unlink()


@scenario("hostile-owner", is_short=False)
def hostile_owner(context):
    """The hostile program as root under root's broker: it may disturb, but reads nothing, and afterwards all is well"""
    capture = capture_file(context)
    with stage(context, "owner", is_shared=True) as (arena, stays):
        server, lasting, pairs, hostile, _ = beside_a_hostile(context, arena, stays, "root", 5, capture)
        checks.expect_nothing_foreign(hostile)
        checks.expect_no_problems(pairs)
        time.sleep(1)
        checks.hears(context, server, arena.hosts[0], NEIGHBOUR)
        checks.gets_through(lasting)
        ends_well(lasting, server)
    capture.unlink()


def expect_flows_unhurt(pairs, lasting):
    hurt = [pair for pair in pairs if not pair.verified]
    if hurt:
        raise Failure(f"{len(hurt)} of {len(pairs)} flows of others died\n"
                      + "\n".join(end.evidence() for pair in hurt for end in pair.last))
    told = lasting.sum("told")
    if told:
        raise Failure(f"{told:.0f} connections of others ended\n{lasting.process.evidence()}")
    checks.expect_no_problems([*pairs, lasting])


def expect_port_rule(hostile):
    low = checks.parse_counts(hostile.stdout, "hostile")["low_ports"]
    if low:
        raise Failure(f"a user without privilege bound {low:.0f} ports below 1024")


def expect_same_brokers(arena, before):
    after = arena.brokers(0)
    if after != before:
        raise Failure(f"the broker's processes were {before} and are {after}")


@scenario("stopped-peer")
def stopped_peer(context):
    """A peer stopped for 2 s goes on; one stopped for longer loses its connections, and both ends are told why"""
    with stage(context, "stopped") as (arena, stays):
        server = listening(context, arena, stays)
        client = stays(actors.talk_client(context, arena.hosts[0], server, "lasting client", messages=0, period_ms=50))
        checks.gets_through(client)
        stop_for(context, server, SHORT_STOP_S)
        time.sleep(2)
        if client.status().get("told") or server.status().get("told"):
            raise Failure(f"a stop of {SHORT_STOP_S} s ended connections\n{client.process.evidence()}\n"
                          + server.process.evidence())
        stop_for(context, server, LONG_STOP_S)
        told = client.status().get("told", 0)
        if told < client.at_once:
            raise Failure(f"{told:.0f} of {client.at_once} connections were told within {LONG_STOP_S} s\n"
                          + client.process.evidence(with_stacks=True))
        if not re.search(r"is stopped", client.process.stderr):
            raise Failure(f"the client is not told that its peer's process is stopped\n{client.process.evidence()}")
        time.sleep(1)
        checks.hears(context, server, arena.hosts[0])
        checks.gets_through(client)
        client.ask_to_end()
        client.await_end(checks.END_SECONDS)
        checks.is_empty(server)
        ends_well(server)
        checks.expect_no_problems([client])


def stop_for(context, actor, seconds):
    actor.stop(seconds)
    context.report.figure("stops")
    time.sleep(seconds)
    actor.go_on()


@scenario("cmtime", is_short=False, is_long=True)
def cmtime(context):
    """cmtime makes 10,000 connections while both broker processes are killed three times: all connected in the end"""
    if not shutil.which("cmtime"):
        raise places.Unavailable("cmtime is not installed")
    with stage(context, "cmtime") as (arena, _):
        a, b = arena.hosts
        arguments = ["cmtime", "-p", programs.next_port(), "-c", CMTIME_CONNECTIONS, "-t", 20000, "-r", 20]
        with Process(b, arguments + ["-b", arena.address(1)], name="cmtime server") as server:
            programs.wait_reachable(b)
            with Process(a, arguments + ["-s", arena.address(1)], name="cmtime client") as client:
                for _ in range(3):
                    time.sleep(1)
                    for number in (0, 1):
                        for pid in arena.wait_whole(number, 5):
                            send_signal(pid, signal.SIGKILL)
                            context.report.figure("kills")
                client.wait_success(CMTIME_SECONDS)  # the server goes on for ever
            said = client.stdout + client.stderr + server.stdout + server.stderr
            if re.search(r"(?i)error|fail|unexpected", said):
                count = len(re.findall(r"RDMA_CM_EVENT_|^failure", client.stdout + client.stderr, re.M))
                raise Failure(f"of {CMTIME_CONNECTIONS} connections {count} were not made\n{client.evidence()}\n"
                              f"{server.evidence(with_stacks=True)}\n{checks.of_brokers(arena.hosts)}")
            server.signal(signal.SIGINT)
            server.wait(20)
            context.report.figure("connections", CMTIME_CONNECTIONS)


@scenario("many-neighbours", is_short=False, is_long=True)
def many_local_peers(context):
    """64 processes of one host (--processes N), each connected to each, 32 of them by memory: every byte is right, and what it takes"""
    with contextlib.closing(places.World(context.launcher)) as world:
        path = world.own_loopback("crowd")
        with Process(path.server, [context.program("crowd"), context.processes], name="crowd") as crowd:
            crowd.wait_success(CROWD_SECONDS)
        strangers = crowd.stderr.count("of this host goes over the wire")
        print(f"  {crowd.stdout.strip()}\n  {strangers} times one of two took the other for a stranger", flush=True)
        if "local" not in crowd.ways():
            raise Failure(f"nothing went by memory\n{crowd.evidence()}")
        world.expect_nothing_left(path)


@scenario("busy-cores", is_short=False, is_long=True)
def busy_cores(context):
    """Two spinning pairs of ucx_perftest and a compiler on two cores, for MINUTES: no error, and 0.7 of TCP's throughput"""
    with stage(context, "busy") as (arena, _):
        busy.run(context, arena, context.minutes * 60)


@scenario("churn")
def churn_rounds(context):
    """Rounds of connection churn under kills, stops, floods, loss and a hostile user, for MINUTES"""
    churn.run(context, context.minutes * 60, context.only_round)
