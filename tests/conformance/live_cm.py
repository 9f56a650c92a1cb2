"""Live tests: programs that find each other by IP address, through librdmacm: Debian's rdmacm-utils, and perftest -R."""

import re
import shutil
import time

import places
import programs
from live import BOTH, live_test
from process import Failure, Process, finish

SECONDS = 40
# What a client says when nobody listens yet: the servers print nothing when they do.
REFUSED = re.compile(r"RDMA_CM_EVENT_REJECTED|RDMA_CM_EVENT_UNREACHABLE, error: 1|Connection refused|error 8\b|Received 8 times|status 8|Unexpected CM event|"
                     r"connect error|connection request")


def run_until_served(server, path, arguments, settings=None):
    """The client, ended well. While the server does not listen yet it is refused, and asks again."""
    deadline = time.monotonic() + SECONDS
    while True:
        with Process(path.client, arguments, settings=settings, name="client " + arguments[0]) as client:
            status = client.wait(SECONDS)
        if status == 0 or server.status is not None or time.monotonic() > deadline:
            break
        said = client.stdout + client.stderr
        if said.strip() and not REFUSED.search(said):  # later ones of cmtime say nothing of it
            break
        time.sleep(0.1)
    if status != 0:
        raise Failure(f"client ended with status {status}\n{client.evidence()}\n{server.evidence()}")
    return client


def run_cm_pair(path, server_arguments, client_arguments, least=1, seconds=SECONDS):
    """Both end well, and their bytes went through Verbena the right way. Returns server and client, ended."""
    for arguments in (server_arguments, client_arguments):
        if not shutil.which(arguments[0]):
            raise places.Unavailable(f"{arguments[0]} is not installed")
    with Process(path.server, server_arguments, name="server " + server_arguments[0]) as server:
        programs.wait_reachable(path.server)
        client = run_until_served(server, path, client_arguments)
        finish([server], seconds)
    programs.expect_counted((server, client), "packets", least)
    programs.expect_way((server, client))
    return server, client


def each_path(context, versions=(4, 6), names=("vb_lo", "vb_lo_wire", "veth1500")):
    """(path, server's address) of every path and IP version."""
    for name in names:
        path = context.world.open(name)
        if path is None:
            raise places.Unavailable(context.world.unavailable[name])
        for version in versions:
            yield path, path.server.address[version]


def expect_lines(process, pattern, count):
    found = len(re.findall(pattern, process.stdout, re.M))
    if found != count:
        raise Failure(f"{process.name}: /{pattern}/ {found} times in its output, expected {count}\n{process.evidence()}")


def ping(path, address, *more):
    arguments = ["-a", address, "-p", programs.next_port(), "-v", "-V", "-C", 20, "-S", 3000, *more]
    server, client = run_cm_pair(path, ["rping", "-s"] + arguments, ["rping", "-c"] + arguments)
    expect_lines(client, r"^ping data: rdma-ping-", 20)
    expect_lines(server, r"^server ping data: rdma-ping-", 20)


@live_test("rping: SEND, READ and WRITE over a connection by IP address")
def rping(context):
    for path, address in each_path(context):
        ping(path, address)


@live_test("rping -q: a program that moves its QP itself")
def rping_own_qp(context):
    for path, address in each_path(context, names=("vb_lo", "vb_lo_wire")):
        ping(path, address, "-q")


@live_test("rping: a server at the wildcard address of either family")
def rping_wildcard(context):
    for path, address in each_path(context, names=("veth1500",)):
        port = programs.next_port()
        more = ["-p", port, "-v", "-V", "-C", 5]
        run_cm_pair(path, ["rping", "-s", "-a", "::0" if ":" in address else "0.0.0.0"] + more,
                    ["rping", "-c", "-a", address] + more)


@live_test("rping, ucmatose, udaddy: 127.0.0.1 and ::1 where vb_lo is not offered", BOTH)
def loopback_of_a_machine(context):
    place, _ = context.world.machine("machine")
    path = places.Path("machine", place, place, 1024)
    for address in ("127.0.0.1", "::1"):
        ping(path, address)
        complete(path, "ucmatose", ["-b", address, "-c", 5, "-C", 30], ["-s", address, "-c", 5, "-C", 30], least=150)
        complete(path, "udaddy", ["-b", address, "-c", 4], ["-s", address, "-c", 4], least=40)


@live_test("rping: a server at 127.0.0.1 is not at the machine's other addresses")
def loopback_is_not_outside(context):
    place, _ = context.world.machine("machine")
    port = programs.next_port()
    with Process(place, ["rping", "-s", "-a", "127.0.0.1", "-p", port], settings={"VERBENA_LOG": "info"}) as server:
        server.wait_output(r"listening at 127.0.0.1", SECONDS)
        with Process(place, ["rping", "-c", "-a", place.address[4], "-p", port]) as client:
            if client.wait(SECONDS) == 0 or not REFUSED.search(client.stdout + client.stderr):
                raise Failure(f"it was not refused\n{client.evidence()}")


@live_test("rping: a server on vb_lo serves on when another interface comes and goes")
def loopback_meets_hotplug(context):
    path = context.world.own_loopback("hotplug")
    place, port = path.server, programs.next_port()
    arguments = ["-a", "127.0.0.1", "-p", port, "-v", "-C", 5]
    with Process(place, ["rping", "-s", "-P"] + arguments, name="server rping") as server:
        programs.wait_reachable(place)
        for change in (None, "link add vbt0 type veth peer name vbt1,addr add 10.79.0.1/24 dev vbt0,link set vbt1 up,"
                             "link set vbt0 up", "link delete vbt0"):
            for line in change.split(",") if change else ():
                place.run("ip", *line.split())
            run_until_served(server, path, ["rping", "-c"] + arguments)
            if server.status is not None:
                raise Failure(f"the server ended after {change}\n{server.evidence()}")


@live_test("rping: VERBENA_LOG=info says when the server listens, at which address and port")
def rping_listening(context):
    for path, address in each_path(context, names=("vb_lo",)):
        port = programs.next_port()
        arguments = ["rping", "-s", "-a", address, "-p", port]
        with Process(path.server, arguments, settings={"VERBENA_LOG": "info"}, name="server rping") as server:
            said = server.wait_output(r"listening at (\S+), port (\d+) of port space (\w+)$", SECONDS)
            if said.groups() != (address, str(port), "0x0106"):
                raise Failure(f"it listens at {address}, port {port}\n{server.evidence()}")


def complete(path, program, server_arguments, client_arguments, **more):
    server, client = run_cm_pair(path, [program] + server_arguments, [program] + client_arguments, **more)
    for process in (server, client):
        programs.expect(process, r"^test complete$", "'test complete'")
        programs.expect(process, r"^return status 0$", "'return status 0'")


@live_test("ucmatose: many connections of one process, event channels, TOS, ack timeout, RDMA_PS_IB")
def ucmatose(context):
    for path, address in each_path(context):
        complete(path, "ucmatose", ["-b", address, "-c", 20, "-C", 30], ["-s", address, "-c", 20, "-C", 30], least=600)
    for more in (["-m"], ["-t", 32], ["-a", 18], ["-P", "ib"]):
        path = context.world.open("vb_lo")
        complete(path, "ucmatose", ["-c", 5] + more, ["-s", "127.0.0.1", "-c", 5] + more)


@live_test("cmtime: 100 connections at once, each phase timed")
def cmtime(context):
    for path, address in each_path(context):
        port = programs.next_port()
        with Process(path.server, ["cmtime", "-b", address, "-p", port], name="server cmtime") as server:
            programs.wait_reachable(path.server)
            try:
                client = run_until_served(server, path, ["cmtime", "-s", address, "-p", port, "-c", 100])
            except Failure as failure:
                if ":" in address and "Address family for hostname not supported" in str(failure):
                    continue  # later ones have a socket of their own beside, of IPv4 alone
                raise
        programs.expect(client, r"^(?:connect +:|full connect) +[\d.]+ ", "the time to connect")
        if client.stats().get("cm_tx_mads", 0) < 300:  # REQ, RTU and DREQ of each
            raise Failure(f"not connected through Verbena\n{client.evidence()}")


@live_test("udaddy: datagram services by IP address")
def udaddy(context):
    for path, address in each_path(context):
        complete(path, "udaddy", ["-b", address, "-c", 4], ["-s", address, "-c", 4], least=40)


@live_test("mckey: multicast by IP address")
def multicast(context):
    if not shutil.which("mckey"):
        raise places.Unavailable("mckey is not installed")
    path = context.world.open("veth1500")
    if path is None:
        raise places.Unavailable(context.world.unavailable["veth1500"])
    for version, group in ((4, "239.1.2.3"), (6, "ff15::7471")):
        arguments = ["stdbuf", "-oL", "mckey", "-m", group, "-C", 10, "-S", 500]
        with Process(path.server, arguments + ["-b", path.server.address[version]], name="receiver mckey") as receiver:
            receiver.wait_output(r"mckey: joined")
            time.sleep(0.5)  # it posts its receives, and the kernel tells the link
            with Process(path.client, arguments + ["-s", "-b", path.client.address[version]], name="sender mckey") as sender:
                finish([sender, receiver], SECONDS)
        for process in (receiver, sender):
            programs.expect(process, r"^return status 0$", "its end")
        if receiver.stats().get("rx_packets", 0) < 10:
            raise Failure(f"not received through Verbena\n{receiver.evidence()}")


@live_test("rdma_client and rdma_server: endpoints made in one call")
def endpoints(context):
    for path, address in each_path(context):
        port = programs.next_port()
        server, client = run_cm_pair(path, ["rdma_server", "-s", address, "-p", port],
                                     ["rdma_client", "-s", address, "-p", port])
        programs.expect(server, r"^rdma_server: end 0$", "its end")
        programs.expect(client, r"^rdma_client: end 0$", "its end")


@live_test("rdma_xclient and rdma_xserver: a shared receive queue, and XRC")
def shared_queues(context):
    for kind in ("r", "x"):
        path = context.world.open("vb_lo")
        port = programs.next_port()
        server, client = run_cm_pair(path, ["rdma_xserver", "-p", port, "-c", kind],
                                     ["rdma_xclient", "-s", "127.0.0.1", "-p", port, "-c", kind])
        programs.expect(server, r"^rdma_xserver: end 0$", "its end")
        programs.expect(client, r"^rdma_xclient: end 0$", "its end")


@live_test("perftest -R: connections by the connection manager")
def perftest(context):
    for path, address in each_path(context, versions=(4,)):  # this version knows no other addresses
        for program, *more in (["ib_write_bw", "-n", 2000], ["ib_send_lat", "-n", 200], ["ib_read_bw", "-q", 4, "-n", 400],
                               ["ib_atomic_bw", "-n", 400], ["ib_send_bw", "-c", "UD", "-n", 400]):
            arguments = [program, "-R", "-p", programs.next_port(), "-F", "-d", None, *more]
            server_arguments, client_arguments = list(arguments), list(arguments)
            server_arguments[6], client_arguments[6] = path.server.device, path.client.device
            _, client = run_cm_pair(path, server_arguments, client_arguments + [address])
            if not programs.result_rows(client.stdout):
                raise Failure(f"{client.name}: no row of results\n{client.evidence()}")
