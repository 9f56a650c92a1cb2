"""Programs that connect by IP address: Linux's librdmacm and connection manager at one end, ours at the other."""

import contextlib
import pathlib
import re
import time

import captures
import programs
from process import Failure, Process, finish

PERFTEST = ("-R", "-F", "-u", "18", "-n", "100")
# Each a pair of command lines, the server's and the client's, to which address and port are added.
TESTS = [(("rping", "-v", "-V", "-C", "10", "-S", "3000"),) * 2,
         (("rping", "-q", "-v", "-V", "-C", "10"),) * 2,
         (("ucmatose", "-c", "3", "-C", "10"),) * 2,
         (("udaddy", "-c", "3", "-C", "10"),) * 2,
         (("rdma_server",), ("rdma_client",)),
         (("cmtime",), ("cmtime", "-c", "20")),
         (("rstream", "-S", "4096", "-C", "100", "-T", "v"),) * 2,
         (("rstream", "-S", "300001", "-C", "10", "-T", "v", "-T", "n"),) * 2,
         *(((program, *PERFTEST),) * 2 for program in ("ib_write_bw", "ib_send_bw", "ib_read_bw"))]
# What says, besides its end, that all went well; rping -V, rstream -T v, ucmatose and udaddy look at what they receive.
RESULT = {"rping": r"^(server )?ping data: rdma-ping-9: ", "ucmatose": r"^return status 0$",
          "udaddy": r"^return status 0$", "rdma_server": r"^rdma_server: end 0$",
          "rdma_client": r"^rdma_client: end 0$"}
CLIENT_RESULT = {"rstream": r"^custom +\S+ +\d+ .* \d+\.\d+", "cmtime": r"^connect +:"}
COMPLAINT = re.compile(r"^event: |data verification failed|mismatch|wrong data", re.I | re.M)
UDADDY_PORT = 7174  # which no option changes
# perftest 4.5 connects twice, and its server listens for the second connection when the client may have asked for it
# already: a Linux kernel refuses that at once, and the client then crashes.
TOO_EARLY = re.compile(r"RDMA_CM_EVENT_REJECTED; error: 8\.")
ATTEMPTS = 10
ENDLESS = ("cmtime",)  # its server goes on until it is ended; it connects, and transfers nothing


def label(test):
    return " ".join(test[1])


def versions(test):
    """perftest 4.5 looks up no other than IPv4 addresses with -R."""
    return (4,) if test[0][0].startswith("ib_") else (4, 6)


def command_lines(test, address):
    """(server's, client's, port)"""
    server, client = (list(command) for command in test)
    port = programs.next_port()
    if server[0] == "udaddy":
        port = UDADDY_PORT
    else:
        server += ["-p", str(port)]
        client += ["-p", str(port)]
    if server[0] == "rping":
        return [*server, "-s", "-a", address], [*client, "-c", "-a", address], port
    if server[0].startswith("ib_"):
        return server, [*client, address], port
    return [*server, "-s" if server[0] == "rdma_server" else "-b", address], [*client, "-s", address], port


def wait_listening_there(guest, server, port, seconds):
    """The kernel says who listens. Several looks with one command, for each costs half a second."""
    look = f"rdma resource show cm_id | grep -q 'state LISTEN .*:{port} '"
    loop = f"for i in 1 2 3 4 5 6 7 8 9 10; do {look} && exit 0; sleep 0.1; done; exit 1"
    deadline = time.monotonic() + seconds
    while guest.tool("exec", loop, check=False).returncode:
        if server.status is not None or time.monotonic() > deadline:
            raise Failure(f"{server.name} does not listen on port {port}\n{server.evidence()}")


def judge(server, client):
    for process in (server, client):
        pattern = RESULT.get(process.arguments[0]) or process is client and CLIENT_RESULT.get(process.arguments[0])
        if pattern:
            programs.expect(process, pattern, "its result")
        if COMPLAINT.search(process.stdout + process.stderr):
            raise Failure(f"{process.name} complains\n{process.evidence()}")
    if client.arguments[0].startswith("ib_") and not programs.result_rows(client.stdout):
        raise Failure(f"{client.name} printed no row of results\n{client.evidence()}")


class AskedTooEarly(Failure):
    """perftest's client was quicker than its server."""


def run(*arguments):
    """How many packets were captured, and how often the pair was started."""
    for attempt in range(1, ATTEMPTS):
        with contextlib.suppress(AskedTooEarly):
            return run_once(*arguments), attempt
    return run_once(*arguments), ATTEMPTS


def run_once(here, guest, folder, test, version, is_server_here, seconds, keep):
    """One pair of programs; how many packets were captured and found well-formed."""
    server_line, client_line, port = command_lines(test, guest.address(1 if is_server_here else 2, version))
    capture = pathlib.Path(folder) / f"{guest.kernel}-{programs.next_port()}.pcapng"
    with contextlib.ExitStack() as stack:
        stack.enter_context(captures.Tap(here, f"rxepeer{guest.number}", capture))
        if is_server_here:
            server = stack.enter_context(Process(here, server_line, settings={"VERBENA_LOG": "info"},
                                                 name="server on Verbena"))
            server.wait_output(rf"listening at .*, port {port} ", seconds)
            client = stack.enter_context(Process(guest, client_line, through_verbena=False, name="client on rxe"))
        else:
            server = stack.enter_context(Process(guest, server_line, through_verbena=False, name="server on rxe"))
            wait_listening_there(guest, server, port, seconds)
            client = stack.enter_context(Process(here, client_line, name="client on Verbena"))
        try:
            finish([client] if server_line[0] in ENDLESS else [server, client], seconds)
        except Failure as failure:
            is_early = server_line[0].startswith("ib_") and not is_server_here and TOO_EARLY.search(client.stderr)
            raise AskedTooEarly(str(failure)) if is_early else failure from None
        finally:
            # What runs there does not end when the connection to it does.
            if not is_server_here and server.status is None:
                guest.shell(f"pkill -x {server_line[0]}", check=False)
    judge(server, client)
    ours = server if is_server_here else client
    if server_line[0] not in ENDLESS and not ours.stats().get("rx_packets"):
        raise Failure(f"{ours.name} received nothing through Verbena\n{ours.evidence()}")
    count = captures.judge(capture, has_requests=True)
    if not keep:
        capture.unlink(missing_ok=True)
    return count
