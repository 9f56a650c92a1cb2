"""Live tests: two cables between two hosts. One of them dies, and comes back, while programs talk over it."""

import re
import time

import peers
import places
import programs
from live import live_test
from process import Failure, Process, finish

GAP_MS = 100  # for which a program may wait for a completion when a link dies
ATTEMPTS = 4  # a process that waits for its core for longer makes such a gap too: one in all must not
MTU = 1500
BACK_SECONDS = 1.0  # after which its own link is used again


def two_cables(context):
    """The path that programs use, and the other, by which their own TCP connections go."""
    path = context.world.veth("failover", MTU)
    return path, places.second_cable(context.world, path, MTU)


def set_link(place, state):
    place.run("ip", "link", "set", place.device.removeprefix("vb_"), *state.split())


def darken(place, peer):
    """Packets leave, and nobody hears them."""
    place.run("ip", "neigh", "replace", peer.address[4], "lladdr", "02:00:00:00:00:99", "dev",
              place.device.removeprefix("vb_"), "nud", "permanent")


def lighten(place, peer):
    place.run("ip", "neigh", "del", peer.address[4], "dev", place.device.removeprefix("vb_"))


def start(context, path, other, op, *more, settings=None, server_settings=None):
    """A verifying pair over the path, as (server, client)."""
    port = programs.next_port()
    server = peers.start_server(context, path.server, port, settings=server_settings or settings)
    arguments = peers.peer_arguments(context, path.client, port, "-o", op, "-u", peers.LONG_TIMEOUT, *more, "client",
                                     other.server.address[4])
    return server, Process(path.client, arguments, "root", settings, name=f"peer client {port} {op}")


def counted(process, counter):
    return process.stats().get(counter, 0)


def expect_moved(server, client, returns=True):
    """Every byte was verified, by the pair itself."""
    client.wait_output(r"^done ", 0)
    both = server.evidence() + "\n" + client.evidence()
    for counter in ("path_moves", "path_follows") + (("path_returns",) if returns else ()):
        if not counted(server, counter) + counted(client, counter):
            raise Failure(f"{counter} is 0\n{both}")
    if counted(server, "qp_errors") + counted(client, "qp_errors"):
        raise Failure(f"a QP failed\n{both}")
    if not re.search(r"^verbena: qp 0x\w+: .*, so it goes on from 10\.81\.", server.stderr + client.stderr, re.MULTILINE):
        raise Failure(f"nobody said that a QP moved\n{both}")


def undisturbed(context, path, other, op):
    server, client = start(context, path, other, op, "-s", 65536, "-q", 3, "-t", 3)
    with server, client:
        finish([server, client], 30)
    return client


def expect_short_gap(attempt, undisturbed):
    """attempt() gives a client that has ended, and how long it took to return. A machine that keeps processes from their
    cores shows nothing of either."""
    seen = []
    while not any(gap_ms <= GAP_MS and back_s <= BACK_SECONDS for gap_ms, back_s in seen):
        if len(seen) < ATTEMPTS:
            client, back_s = attempt()
            seen.append((peers.longest_ms(client), round(back_s, 2)))
        elif (longest := peers.longest_ms(undisturbed())) > GAP_MS / 2:
            raise places.Unavailable(f"nothing but moves was shown: a completion takes {longest:.0f} ms here without any blow")
        else:
            raise Failure(f"longest wait for a completion (ms), and for the return (s), each time: {seen}")


def blow(context, path, other, op, strike, mend):
    server, client = start(context, path, other, op, "-s", 65536, "-q", 3, "-t", 3)
    with server, client:
        client.wait_output(r"^connected")
        time.sleep(0.5)
        strike(path)
        time.sleep(1)
        mend(path)
        mended = time.monotonic()
        client.wait_output(r"back on its own path", 10)
        back_s = time.monotonic() - mended
        finish([server, client], 30)
    expect_moved(server, client)
    return client, back_s


def enter(what, checked, strike, mend):
    """checked: the operation that the check runs; the others take as long again and run with --all-live."""
    for op in ("write", "send", "read"):
        @live_test(f"{what} while programs {op} over it: they go on over the other, and back, and notice nothing",
                   is_in_check=op == checked)
        def run(context, op=op):
            path, other = two_cables(context)
            expect_short_gap(lambda: blow(context, path, other, op, strike, mend),
                             lambda: undisturbed(context, path, other, op))


enter("the sender's link goes down", "write", lambda path: set_link(path.client, "down"), lambda path: set_link(path.client, "up"))
enter("the receiver's link goes down", "read", lambda path: set_link(path.server, "down"), lambda path: set_link(path.server, "up"))
enter("what the sender sends vanishes", "send", lambda path: darken(path.client, path.server),
      lambda path: lighten(path.client, path.server))
enter("what the receiver says vanishes", None, lambda path: darken(path.server, path.client),
      lambda path: lighten(path.server, path.client))


@live_test("an interface of the receiver begins to drop all that arrives: a QP goes on over the other")
def dropping(context):
    path, other = two_cables(context)
    # After some ten thousand packets, for good.
    faults = {"VERBENA_FAULTS": f"if={path.server.device.removeprefix('vb_')},drop=99%,burst=1000000,seed=1"}

    def attempt():
        server, client = start(context, path, other, "write", "-s", 65536, "-q", 2, "-t", 2, server_settings=faults)
        with server, client:
            finish([server, client], 30)
        expect_moved(server, client, returns=False)
        return client, 0

    expect_short_gap(attempt, lambda: undisturbed(context, path, other, "write"))


def wait_for_the_link(context, path, other, settings):
    """A pair whose link is dark for half a second; both of them, ended."""
    server, client = start(context, path, other, "write", "-s", 65536, "-t", 3, settings=settings)
    with server, client:
        client.wait_output(r"^connected")
        time.sleep(1)
        darken(path.client, path.server)
        time.sleep(0.5)
        lighten(path.client, path.server)
        finish([server, client], 30)
    if peers.longest_ms(client) < 450:
        raise Failure("it did not wait\n" + client.evidence())
    return server, client


def expect_both_links(process):
    """It has sent about half of its data by each."""
    match = re.search(r"(\d+)% of its packets by a second link, from 10\.81\.", process.stderr)
    if not match or not 25 <= int(match[1]) <= 75:
        raise Failure("it did not use both links\n" + process.evidence())


def both_links(what, checked, strike=None, mend=None):
    for op in ("write", "send", "read"):
        @live_test(f"VERBENA_PATHS=8: programs {op} over both links{what}", is_in_check=op == checked)
        def run(context, op=op):
            path, other = two_cables(context)

            def attempt():
                settings = {"VERBENA_PATHS": "8"}
                server, client = start(context, path, other, op, "-s", 65536, "-q", 3, "-t", 3, settings=settings)
                with server, client:
                    client.wait_output(r"^connected")
                    time.sleep(0.5)
                    if strike:
                        strike(other)
                        time.sleep(0.5)
                        mend(other)
                    finish([server, client], 30)
                client.wait_output(r"^done ", 0)
                if counted(server, "qp_errors") + counted(client, "qp_errors"):
                    raise Failure("a QP failed\n" + server.evidence() + "\n" + client.evidence())
                expect_both_links(server if op == "read" else client)
                return client, 0

            expect_short_gap(attempt, lambda: undisturbed(context, path, other, op))


both_links("", "read")
both_links(", and go on when the second goes down", "write", lambda other: set_link(other.client, "down"),
           lambda other: set_link(other.client, "up"))
both_links(", and go on when what is sent by the second vanishes", "send", lambda other: darken(other.client, other.server),
           lambda other: lighten(other.client, other.server))


@live_test("VERBENA_PATHS=1: a QP waits for its link")
def off(context):
    path, other = two_cables(context)
    server, client = wait_for_the_link(context, path, other, {"VERBENA_PATHS": "1"})
    if any(name.startswith("path_") for name in {**server.stats(), **client.stats()}):
        raise Failure("it did not wait\n" + client.evidence())


@live_test("a device that VERBENA_DEVICES leaves out is not used when the other's link dies")
def not_allowed(context):
    path, other = two_cables(context)
    settings = {"VERBENA_DEVICES": path.client.device + "," + path.server.device}
    _, client = wait_for_the_link(context, path, other, settings)
    if counted(client, "path_moves"):
        raise Failure("it did not wait\n" + client.evidence())


@live_test("ib_write_bw goes on when its link dies, and goes back to it")
def perftest(context):
    path, other = two_cables(context)
    port = programs.next_port()

    def arguments(place):
        return ["ib_write_bw", "-d", place.device, "-x", str(place.gid_index(4)), "-p", str(port), "-F", "-D", "5"]

    with Process(path.server, arguments(path.server)) as server:
        server.wait_listening(port)
        with Process(path.client, arguments(path.client) + [other.server.address[4]]) as client:
            time.sleep(2)
            set_link(path.client, "down")
            time.sleep(1)
            set_link(path.client, "up")
            finish([server, client], 30)
    if not counted(client, "path_moves") or not counted(client, "path_returns") or counted(client, "qp_errors"):
        raise Failure("it did not move and return\n" + client.evidence())
