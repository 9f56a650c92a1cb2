"""Live tests: UCX, and Open MPI over it, unmodified. UCX goes over TCP in silence when it does not like a device, so each
test wants the bytes that it moved in the summaries of both ends."""

import os
import pathlib
import re

import places
import programs
from live import BOTH, MEMORY, live_test
from process import Failure, Process, finish

PERFTEST = "ucx_perftest"
# UCX's rc_verbs finds its peers by datagrams; "aux" lets it use ud_verbs for that alone.
TRANSPORTS = {"rc_verbs": "rc_verbs,ud_verbs:aux", "ud_verbs": "ud_verbs"}
# test, bytes a message, messages, whether the client sends and receives the payload
OPERATIONS = (("tag_lat", 8, 500, True, True), ("tag_bw", 65536, 200, True, False),
              ("ucp_put_bw", 65536, 200, True, False), ("ucp_get", 65536, 60, False, True),
              ("ucp_fadd", 8, 100, True, True))


def counted(process):
    """(payload bytes sent, received) of a finished process, by its summary."""
    values = process.stats()
    if not values.get("tx_packets"):
        raise Failure(f"{process.name} sent nothing through Verbena\n{process.evidence()}")
    return values.get("tx_bytes", 0), values.get("rx_bytes", 0)


def settings_of(place, transport, version, user):
    return {"UCX_TLS": TRANSPORTS[transport], "UCX_NET_DEVICES": f"{place.device}:1",
            "UCX_IB_GID_INDEX": str(place.gid_index(version, user))}


def run_perftest(path, transport, operation, version=4, user="root"):
    test, size, count, sends, receives = operation
    port = programs.next_port()
    with Process(path.server, [PERFTEST, "-p", port], user, settings_of(path.server, transport, version, user),
                 name=f"server {PERFTEST} {transport} {test}") as server:
        server.wait_listening(port)
        arguments = [PERFTEST, "-p", port, path.server.address[4], "-t", test, "-s", size, "-n", count, "-w", 10]
        with Process(path.client, arguments, user, settings_of(path.client, transport, version, user),
                     name=f"client {PERFTEST} {transport} {test}") as client:
            finish([server, client], 60)
    if not re.search(rf"^Final: +{count} ", client.stdout, re.M):
        raise Failure(f"no result of {count} messages\n{client.evidence()}")
    expect_bytes(server, client, size * count, sends, receives)


def expect_bytes(server, client, payload, sends, receives):
    (server_sent, server_received), (client_sent, client_received) = counted(server), counted(client)
    if sends and min(client_sent, server_received) < payload:
        raise Failure(f"client sent {client_sent}, server received {server_received} bytes, not {payload}\n"
                      + client.evidence())
    if receives and min(server_sent, client_received) < payload:
        raise Failure(f"server sent {server_sent}, client received {client_received} bytes, not {payload}\n"
                      + client.evidence())
    programs.expect_way((server, client))


def need(program):
    if not any(os.access(os.path.join(folder, program), os.X_OK) for folder in os.environ["PATH"].split(":")):
        raise places.Unavailable(f"{program} is not installed")


@live_test("ucx_info lists rc_verbs and ud_verbs on our device, for everyone, and does not without the preload")
def ucx_info(context):
    need("ucx_info")
    place = context.world.fresh_namespace("ucx")
    for user in ("root", "nobody"):
        with Process(place, ["ucx_info", "-d"], user) as process:
            process.wait_success(30)
        found = re.findall(r"Transport: (\w+)\n# +Device: (\S+)", process.stdout)
        for transport in TRANSPORTS:
            if (transport, f"{place.device}:1") not in found:
                raise Failure(f"no {transport} on {place.device}\n{process.evidence()}")
    with Process(place, [place.launcher, "run", "--no-preload", "--", "ucx_info", "-d"], "root", {"LD_PRELOAD": ""},
                 through_verbena=False) as process:
        process.wait_success(30)
    if "vb_lo" in process.stdout:
        raise Failure(f"seen without the preload library: this test would not notice its absence\n{process.evidence()}")


def enter_perftest(transport, path_name):
    @live_test(f"{PERFTEST} over {transport} on {path_name}: IPv4, IPv6, messages, put, get, atomics")
    def run(context):
        need(PERFTEST)
        path = context.world.open(path_name)
        if path is None:
            raise places.Unavailable(context.world.unavailable[path_name])
        for version in (4, 6):
            for operation in OPERATIONS:
                run_perftest(path, transport, operation, version)


for name in ("vb_lo", "vb_lo_wire", "veth1500"):
    for kind in TRANSPORTS:
        enter_perftest(kind, name)


@live_test(f"{PERFTEST} as an ordinary user", BOTH)
def ordinary_user(context):
    need(PERFTEST)
    path = context.world.open("vb_lo")
    for transport in TRANSPORTS:
        run_perftest(path, transport, OPERATIONS[1], user="nobody")


@live_test("the summary says that ucx_perftest went over TCP, and that a program opened no device")
def silent_fallback(context):
    need(PERFTEST)
    place = context.world.fresh_namespace("tcp")
    port = programs.next_port()
    settings = {"UCX_TLS": "tcp"}
    with Process(place, [PERFTEST, "-p", port], settings=settings, name="server over TCP") as server:
        server.wait_listening(port)
        with Process(place, [PERFTEST, "-p", port, "127.0.0.1", "-t", "tag_bw", "-n", 100], settings=settings,
                     name="client over TCP") as client:
            finish([server, client], 60)
    with Process(place, ["ibv_devices"]) as lister:
        lister.wait_success(10)
    for process, said in ((client, r"wire: (nothing was sent|no device was opened)"), (lister, "no device was opened")):
        if not re.search(said, process.stderr):
            raise Failure(f"stderr does not contain /{said}/\n{process.evidence()}")


# ---- Open MPI -------------------------------------------------------------------------------------------------------

# Debian's configuration leaves UCX out, and UCX's own default wants a Mellanox driver.
MPI_SWITCHES = "--oversubscribe --mca pml ucx --mca osc ucx --mca opal_common_ucx_devices any --mca opal_common_ucx_tls any"


def run_over_ucx(context, ranks, user):
    place = context.world.fresh_namespace("mpi")
    settings = {"UCX_TLS": "rc_verbs,ud_verbs,self", "UCX_NET_DEVICES": f"{place.device}:1"}
    run_mpi(context, place, ranks, user, MPI_SWITCHES, settings)


def run_mpi(context, place, ranks, user, switches, settings, part=1.0):
    """mpi_check, all of its bytes, or that part, by the transport that the switches and settings name."""
    need("mpirun")
    program = context.program("mpi_check")
    if not program.exists():
        raise places.Unavailable("mpi_check was not built: mpicc is not installed")
    settings = {**settings, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with Process(place, ["mpirun", "-n", ranks, *switches.split(), program], user, settings,
                 name=f"mpirun -n {ranks}") as process:
        process.wait_success(120)
    done = [int(payload) for payload in re.findall(r"^done (\d+)$", process.stdout, re.M)]
    lanes = re.findall(r"lane:.*\brx_bytes=(\d+).*\btx_bytes=(\d+)", process.stderr)
    if len(done) != ranks or len(lanes) != ranks:
        raise Failure(f"{ranks} ranks, {len(done)} results, {len(lanes)} summaries\n{process.evidence()}")
    for received, sent in lanes:
        if min(int(received), int(sent)) < done[0] * part:
            raise Failure(f"a rank moved {sent} and {received} bytes, less than its {done[0]}\n{process.evidence()}")


for ranks_wanted in (2, 3, 4):
    live_test(f"Open MPI over UCX: {ranks_wanted} ranks reduce, send, put, get and accumulate",
              BOTH if ranks_wanted == 3 else (MEMORY,))(
        lambda context, ranks=ranks_wanted: run_over_ucx(context, ranks, "root"))
live_test("Open MPI over UCX as an ordinary user")(lambda context: run_over_ucx(context, 2, "nobody"))
