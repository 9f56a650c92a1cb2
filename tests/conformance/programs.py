"""How each program is started, and what its output must say: the part of a case that a person does by hand.

Every judgement reads what the programs print. That the bytes went over Verbena, and by shared memory or as packets, is
read from what its library prints at exit (VERBENA_STATS=1) in both processes."""

import contextlib
import functools
import itertools
import os
import re
import subprocess
import time

import matrix
from process import Failure, Process, finish

WR_PART_ID = "4119"  # at this vendor_part_id perftest posts through ibv_wr_*, and believes in inline data
MEGABYTES = 1 << 25  # about what a bandwidth case moves
UNRELIABLE_MESSAGES = 400
_ports = itertools.count(20000)


def run_case(case, path, seconds):
    """Run one case over a path (places.py). Failure when anything is not as it should be."""
    if case.kind in matrix.TOOLS:
        TOOL[case.kind](case, path, seconds)
    elif case.kind == "ibv_xsrq_pingpong":
        run_xsrq_pingpong(case, path, seconds)
    elif case.kind in matrix.PINGPONG:
        run_pingpong(case, path, seconds)
    else:
        run_perftest(case, path, seconds)


def next_port():
    """A TCP port that no case of this run has used, for the programs' own handshake."""
    return 20000 + next(_ports) % 10000


def wait_reachable(place):
    """Until somebody holds the RoCEv2 port: what is sent before is lost, and sent again only seconds later."""
    deadline = time.monotonic() + 10
    while not place.udp_sockets() and time.monotonic() < deadline:
        time.sleep(0.02)


def run_pair(path, server_arguments, client_arguments, user, port, seconds, settings=None, client_user=None):
    """Server and client, each a process; both must end well. Returns the two, ended."""
    with Process(path.server, server_arguments, user, settings, name="server " + server_arguments[0]) as server:
        server.wait_listening(port)
        with Process(path.client, client_arguments, client_user or user, settings,
                     name="client " + client_arguments[0]) as client:
            finish([server, client], seconds)
    return server, client


def expect(process, pattern, what):
    found = re.search(pattern, process.stdout, re.M)
    if not found:
        raise Failure(f"{process.name}: {what} not found in its output\n{process.evidence()}")
    return found


def expect_counted(processes, what, least):
    """The packets or payload bytes of the test went through Verbena's engine, and both ends saw it."""
    for process in processes:
        if not process.stats():
            raise Failure(f"{process.name} printed no VERBENA_STATS line: did it run on Verbena?\n{process.evidence()}")
    for counter in (f"tx_{what}", f"rx_{what}"):
        moved = sum(process.stats().get(counter, 0) for process in processes)
        if moved < least:
            raise Failure(f"{counter} of both ends is {moved}, expected at least {least}\n"
                          + "\n".join(process.evidence() for process in processes))


def expected_way(processes):
    """local: the processes are of one host, and none of them is kept off memory. wire: as packets."""
    is_local = len({tuple(process.place.prefix) for process in processes}) == 1
    return "local" if is_local and not any(process.is_kept_off_memory() for process in processes) else "wire"


def way_of(case):
    """None: what is to be expected of its places. From one device to another of a host datagrams are packets."""
    return "wire" if case.path == "one_host" and matrix.is_datagram(case.kind) else None


def expect_way(processes, way=None):
    """Everything that each of them sent and received went this way, or the one that is to be expected, and no other."""
    way = way or expected_way(processes)
    for process in processes:
        if process.ways() != {way}:
            raise Failure(f"{process.name}: its bytes went {' and '.join(sorted(process.ways())) or 'nowhere'}, not {way}\n"
                          + "\n".join(process.evidence() for process in processes))


# ------------------------------------------------------------------------------------------------------- pingpongs

def run_pingpong(case, path, seconds):
    size = case.size
    rounds = 20 if size >= 1 << 20 else 100 if size >= 65536 or case.kind == "ibv_srq_pingpong" else 300
    port = next_port()
    arguments = ["-d", None, "-g", None, "-p", str(port), "-n", str(rounds), "-s", str(size), *case.option.split()]
    if case.mtu:
        arguments += ["-m", str(case.mtu)]
    if "-q 64" in case.option:
        arguments += ["-r", "500"]

    def complete(place):
        filled = list(arguments)
        filled[1], filled[3] = place.device, str(place.gid_index(case.ip, case.user))
        return [case.kind] + filled

    server, client = run_pair(path, complete(path.server), complete(path.client) + [path.server.address[4]],
                              case.user, port, seconds)
    for process in (server, client):
        found = expect(process, r"^(\d+) bytes in [\d.]+ seconds = [\d.]+ Mbit/sec", "the line with bytes and seconds")
        # srq_pingpong counts its iterations over all QPs.
        if int(found[1]) != size * rounds * 2:
            raise Failure(f"{process.name} reports {found[1]} bytes, expected {size * rounds * 2}\n{process.evidence()}")
        if "invalid data" in process.stdout + process.stderr:
            raise Failure(f"{process.name} found wrong data\n{process.evidence()}")
    expect_counted((server, client), "bytes", size * rounds * 2)
    expect_way((server, client), way_of(case))


def forget_xrc_domains():
    """The programs open a file each as the name of their XRC domain, and leave it there: nobody else's user may open it."""
    for name in ("/tmp/xrc_domain", "/tmp/xrc_domain_server", "/tmp/xrc_domain_client"):
        with contextlib.suppress(OSError):
            os.unlink(name)


def run_xsrq_pingpong(case, path, seconds):
    """One server, a connection a client, all their messages into its one SRQ. It prints no figures but its success."""
    rounds = 20 if case.size >= 65536 else 100
    clients = int((re.search(r"-c (\d+)", case.option) or [0, 1])[1])
    port = next_port()

    def command(place, *more):
        arguments = [case.kind, "-d", place.device, "-g", str(place.gid_index(case.ip, case.user)), "-p", str(port),
                     "-n", str(rounds), "-s", str(case.size), *more]
        return arguments + (["-m", str(case.mtu)] if case.mtu else [])

    forget_xrc_domains()
    events = ["-e"] if case.option == "-e" else []
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(Process(path.server, command(path.server, *case.option.split()), case.user,
                                             name="server " + case.kind))
        server.wait_listening(port)
        others = [stack.enter_context(Process(path.client, command(path.client, *events) + [path.server.address[4]],
                                              case.user, name=f"client {number} {case.kind}"))
                  for number in range(clients)]
        finish([server, *others], seconds)
    for process in (server, *others):
        expect(process, r"^success$", "its success")
    expect_counted((server, *others), "bytes", 2 * case.size * rounds * clients)
    expect_way((server, *others))


# -------------------------------------------------------------------------------------------------------- perftest

@functools.cache
def knows_option(program, option):
    shown = subprocess.run([program, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return option in shown.stdout


def wants_wr(case):
    """Posting through ibv_wr_*, or inline data, which perftest does for certain adapters only."""
    return case.option == "wr" or "-I" in case.option


def perftest_arguments(case, place, port):
    program, transport = case.kind.split()
    arguments = [program, "-d", place.device, "-x", str(place.gid_index(case.ip, case.user)), "-p", str(port), "-F"]
    if transport != "RC":
        arguments += ["-c", transport]
    if case.size:
        arguments += ["-s", str(case.size)]
    if case.mtu:
        arguments += ["-m", str(case.mtu)]
    if case.option != "wr":
        arguments += case.option.split()
    if wants_wr(case) and knows_option(program, "--no_ddp"):
        arguments += ["--no_ddp"]  # or later versions ask such an adapter for more by its own library
    if "-D" not in arguments:
        arguments += ["-n", str(iterations(case))]
    return arguments


def iterations(case):
    """Enough to fill every queue, few enough to be done in a moment; a multiple of every post list used."""
    if case.option == "-a":
        return 5
    if case.kind.split()[0].endswith("_lat"):
        return 16 if case.size >= 1 << 20 else 200
    queues = int((re.search(r"-q (\d+)", case.option) or [0, 1])[1])
    count = max(16, min(1024, 8192 // queues, MEGABYTES // (max(case.size, 8) * queues)))
    if not case.kind.endswith((" RC", " XRC")) and case.kind.startswith("ib_send"):
        # Nothing makes good what finds no receive posted, and the server waits for every message: no more than it posts.
        count = min(count, UNRELIABLE_MESSAGES)
    # perftest counts a completion as a hundred messages (or as the post list), the last as well. With many queues and a
    # count that is no multiple it believes itself done, polls no more, and never ends.
    return count // 200 * 200 if count >= 200 else min(count, 96) // 8 * 8


def run_perftest(case, path, seconds):
    port = next_port()
    if case.kind.endswith(" XRC"):
        forget_xrc_domains()
    settings = {"VERBENA_PART_ID": WR_PART_ID} if wants_wr(case) else None
    server, client = run_pair(path, perftest_arguments(case, path.server, port),
                              perftest_arguments(case, path.client, port) + [path.server.address[4]],
                              case.user, port, seconds, settings)
    rows = result_rows(client.stdout)
    if not rows:
        raise Failure(f"{client.name}: no row of results\n{client.evidence()}")
    sizes = [row[0] for row in rows]
    if case.option == "-a":
        largest = (case.mtu or path.mtu) if matrix.is_datagram(case.kind) else 1 << 23
        wanted = [1 << power for power in range(1, largest.bit_length())]
    else:
        wanted = [8 if case.kind.startswith("ib_atomic") else case.size]
    if sizes != wanted:
        raise Failure(f"{client.name}: rows for sizes {sizes}, expected {wanted}\n{client.evidence()}")
    # A single byte's bandwidth may round to 0.00 MB/s; its message rate, the last column, does not. On a noisy machine
    # perftest cannot find the clock's frequency, says so, and prints zeros; the counters still show what went.
    has_clock = "Correlation coefficient" not in client.stderr
    if has_clock and any(max(row[2:]) <= 0 for row in rows):
        raise Failure(f"{client.name}: a result of zero\n{client.evidence()}")
    each = [row[1] * row[0] for row in rows]
    if case.kind.startswith("ib_atomic"):  # an atomic carries no payload
        expect_counted((server, client), "packets", sum(row[1] for row in rows) if "-D" not in case.option else 1)
    else:
        expect_counted((server, client), "bytes", sum(each) if "-D" not in case.option else 1)
    expect_way((server, client), way_of(case))


def result_rows(text):
    """Rows of perftest's table as numbers: [bytes, iterations, ...]."""
    rows = []
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 4 and all(re.fullmatch(r"\d+(\.\d+)?|inf|-?nan", field) for field in fields):
            rows.append([int(fields[0]), int(fields[1])] + [float(field) for field in fields[2:]])
    return rows


# ----------------------------------------------------------------------------------------------------------- tools

def run_devices(case, path, seconds):
    with Process(path.server, ["ibv_devices"], case.user) as process:
        process.wait_success(seconds)
    found = expect(process, rf"^\s+{path.server.device}\s+([0-9a-f]{{16}})$", f"{path.server.device} with its GUID")
    if int(found[1], 16) == 0:
        raise Failure(f"the node GUID is zero\n{process.evidence()}")


def run_devinfo(case, path, seconds):
    place = path.server
    with Process(place, ["ibv_devinfo", "-v", "-d", place.device], case.user) as process:
        process.wait_success(seconds)
    expect(process, rf"^hca_id:\s+{place.device}$", "hca_id")
    expect(process, r"^\s+transport:\s+InfiniBand \(0\)$", "the transport")
    expect(process, r"^\s+state:\s+PORT_ACTIVE \(4\)$", "an active port")
    expect(process, r"^\s+link_layer:\s+Ethernet$", "the link layer")
    expect(process, r"^\s+phys_port_cnt:\s+1$", "one port")
    expect(process, rf"^\s+active_mtu:\s+{path.mtu} \(\d\)$", f"an active MTU of {path.mtu}")
    expect(process, rf"GID\[\s*0\]:\s+::ffff:{re.escape(place.address[4])}, RoCE v2", "the IPv4 GID first, RoCE v2")
    expect(process, rf"GID\[\s*\d+\]:\s+{place.address[6]}, RoCE v2", "the IPv6 GID")
    for name in ("max_qp", "max_cq", "max_mr", "max_sge", "max_qp_rd_atom", "max_srq", "max_mw"):
        if int(expect(process, rf"^\s+{name}:\s+(\d+)$", name)[1]) == 0:
            raise Failure(f"{name} is zero\n{process.evidence()}")


def run_asyncwatch(case, path, seconds):
    """It must open the device, sleep, and report a changed address where the namespace is ours to change."""
    place = path.server
    interface = place.device.removeprefix("vb_")
    with Process(place, ["stdbuf", "-oL", "ibv_asyncwatch", "-d", place.device], case.user, name="ibv_asyncwatch") as process:
        process.wait_output(rf"{place.device}: async event FD \d+", seconds)
        if place.prefix:
            # An IPv6 address: of IPv4 a device shows only its first.
            place.run("ip", "addr", "add", "fd79:9::9/128", "dev", interface, "nodad")
            try:
                process.wait_output(r"event_type IBV_EVENT_GID_CHANGE", seconds)
            finally:
                place.run("ip", "addr", "del", "fd79:9::9/128", "dev", interface, check=False)


TOOL = {"ibv_devices": run_devices, "ibv_devinfo": run_devinfo, "ibv_asyncwatch": run_asyncwatch}
