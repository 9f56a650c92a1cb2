"""What stands on verbs, one measurement each, over Verbena, TCP or their own shared memory: UCX, libfabric, Open MPI; and
what connections cost. Between two ends (ends.py), as in measure.py. What was to go over Verbena and did not is a
failure: the summaries of its processes must count the payload."""

import collections
import pathlib
import re
import time

import measure
import programs
from measure import Failure, Process, finish

Ucx = collections.namedtuple("Ucx", "us gbps millions")  # the median of a latency, bandwidth, messages a second

# What UCX is told to go over, besides Verbena.
UCX_WAYS = {
    "tcp": lambda place: {"UCX_TLS": "tcp", "UCX_NET_DEVICES": place.device.removeprefix("vb_")},
    "posix": lambda place: {"UCX_TLS": "posix,self"},
    "posix+cma": lambda place: {"UCX_TLS": "posix,cma,self"},
}
# What mpirun is told, and its environment; None where it is to stay without Verbena.
MPI_WAYS = {
    "ucx": ("--mca pml ucx --mca opal_common_ucx_devices any --mca opal_common_ucx_tls any",
            {"UCX_TLS": "rc_verbs,ud_verbs,self"}),
    "tcp": ("--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include 127.0.0.0/8", None),
}
# libfabric takes 127.0.0.1 for no device's own address; with this one beside it the device counts.
FABRIC_ADDRESS = "fd79:79::1/128"


def _pair(ends, server_arguments, client_arguments, port, settings_at, payload=None):
    """The client, when both ended well. settings_at(place): its environment. With a payload they go over Verbena and move at
    least so many bytes; without, they have not heard of it. Without a port the server listens through RDMA CM, unseen."""
    over_verbena = payload is not None
    with Process(ends.server, server_arguments, settings=settings_at(ends.server), through_verbena=over_verbena,
                 name="server " + server_arguments[0]) as server:
        if port is None:
            time.sleep(SERVER_STARTS)
        else:
            server.wait_listening(port)
        with Process(ends.client, client_arguments, settings=settings_at(ends.client), through_verbena=over_verbena,
                     name="client " + client_arguments[0]) as client:
            finish([server, client], measure.PATIENCE)
    if over_verbena:
        programs.expect_counted((server, client), "bytes", payload)
    return client


def ucx(ends, test, size, count, way="verbena"):
    """ucx_perftest: what it says of the test."""
    def over_verbena(place):
        return {**ends.settings, "UCX_TLS": "rc_verbs,ud_verbs:aux", "UCX_NET_DEVICES": f"{place.device}:1",
                "UCX_IB_GID_INDEX": str(place.gid_index(4))}

    port = programs.next_port()
    arguments = ["ucx_perftest", "-p", port]
    client = _pair(ends, arguments, [*arguments, ends.server.address[4], "-t", test, "-s", size, "-n", count, "-w", 200],
                   port, UCX_WAYS.get(way, over_verbena), size * count if way == "verbena" else None)
    # iterations; latency: median, average, overall; bandwidth in MiB/s: average, overall; messages: average, overall
    row = programs.expect(client, r"^Final:\s+\d+\s+([\d.]+)\s+[\d.]+\s+[\d.]+\s+[\d.]+\s+([\d.]+)\s+\d+\s+(\d+)",
                          "the final row")
    return Ucx(float(row[1]), float(row[2]) * (1 << 20) * 8 / 1e9, float(row[3]) / 1e6)


def prepare_fabric(place):
    """An address for libfabric, in a namespace of our own; the machine's loopback is left as it is."""
    if place.prefix:
        place.run("ip", "addr", "add", FABRIC_ADDRESS, "dev", "lo", "nodad", check=False)


FABRIC_LAYERS = {"msg": ("", "msg"), "rxm": (";ofi_rxm", "rdm")}


def fabric(ends, size, count, over_verbena, layer="msg"):
    """fi_pingpong, over connections or what libfabric puts on them: (us of a transfer one way, Gb/s)."""
    port, (above, endpoint) = programs.next_port(), FABRIC_LAYERS[layer]
    arguments = ["fi_pingpong", "-p", ("verbs" if over_verbena else "tcp") + above, "-e", endpoint, "-S", size, "-I", count]
    client = _pair(ends, [*arguments, "-B", port], [*arguments, "-P", port, ends.server.address[4]], port,
                   lambda place: ends.settings if over_verbena else None, size * count if over_verbena else None)
    # bytes, sent, acknowledged, total, time, MB/s, us a transfer
    row = programs.expect(client, r"^\w+\s+\w+\s+=\w+\s+\S+\s+\S+\s+([\d.]+)\s+([\d.]+)\s", "the row of results")
    return float(row[2]), float(row[1]) * 8 / 1e3


SERVER_STARTS = 1  # seconds
RMA_BW = pathlib.Path(__file__).resolve().parent.parent / "build-fabtests/installed/bin/fi_rma_bw"


def fabric_rma(ends, operation, size, count, over_verbena):
    """Gb/s one way of fi_rma_bw, which `make conformance-fabtests` builds. Both ends send."""
    port, server, client = programs.next_port(), ends.server.address[4], ends.client.address[4]
    arguments = [str(RMA_BW), "-p", "verbs" if over_verbena else "tcp", "-e", "msg", "-o", operation, "-S", size, "-I", count]
    client = _pair(ends, [*arguments, "-s", server, "-B", port], [*arguments, "-s", client, "-P", port, server], None,
                   lambda place: ends.settings if over_verbena else None, 2 * size * count if over_verbena else None)
    # bytes, iterations, total, time, MB/s, us a transfer
    return float(programs.expect(client, r"^\w+\s+\w+\s+\S+\s+\S+\s+([\d.]+)\s+[\d.]+\s", "the row of results")[1]) * 8 / 1e3


def _two_ranks(ends, program, way, size, least):
    """A program of ours for MPI, and that many bytes; of Verbena's least so many went over the wire."""
    switches, settings = MPI_WAYS[way]
    environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if settings is not None:
        environment.update(ends.settings, **settings)
    if way == "ucx":
        environment["UCX_NET_DEVICES"] = f"{ends.client.device}:1"
    with Process(ends.client, ["mpirun", "-n", "2", "--oversubscribe", "--bind-to", "core", *switches.split(), program, size],
                 settings=environment, through_verbena=settings is not None, name=f"mpirun over {way}") as process:
        process.wait_success(measure.PATIENCE)
    if settings is not None:
        programs.expect_counted((process,), "bytes", least)
    return process


def allreduce(ends, program, way, size):
    """us of one MPI_Allreduce of that many bytes between two ranks: the median of the program's."""
    process = _two_ranks(ends, program, way, size, 20 * size)  # it makes more rounds than that
    return float(programs.expect(process, r"^allreduce_us=([\d.]+)", "its result")[1])


def mpi_bandwidth(ends, program, way, size):
    """Gb/s of messages of that many bytes from one rank to another."""
    process = _two_ranks(ends, program, way, size, 100 * size)
    return float(programs.expect(process, r"^gbps=([\d.]+)", "its result")[1])


def cmtime(ends, count):
    """{phase: us a connection} of so many connections at once, and the seconds of all phases together."""
    place, port = ends.server, programs.next_port()
    with Process(place, ["cmtime", "-b", place.address[4], "-p", port, "-c", count], settings=ends.settings,
                 name="server cmtime") as server:
        programs.wait_reachable(place)
        time.sleep(0.2)  # it says nothing when it listens, moments later
        with Process(place, ["cmtime", "-s", place.address[4], "-p", port, "-c", count], settings=ends.settings,
                     name="client cmtime") as client:
            client.wait_success(measure.PATIENCE)
        # The server goes on for ever, and is ended here.
    # The broker carries the manager's messages, so the client counts no packets; its summary shows the library.
    if "verbena: wire:" not in client.stderr:
        raise Failure(f"no summary: did it run on Verbena?\n{client.evidence()}")
    rows = re.findall(r"^(\w[\w ]*?)\s*:\s+([\d.]+)\s+[\d.]+\s+[\d.]+\s+([\d.]+)$", client.stdout, re.M)
    phases = {name: float(each) for name, _, each in rows}
    if not {"connect", "disconnect"} <= set(phases):
        raise Failure(f"no table of phases\n{client.evidence()}")
    return phases, sum(float(total) for _, total, _ in rows) / 1e3


def connection_memory(ends, program, count):
    """Resident bytes of an open connection at the server and at the client, as tests/conformance/dial counts them."""
    place, port = ends.server, programs.next_port()
    with Process(place, [program, "server", place.address[4], port], settings=ends.settings, name="dial server") as server:
        server.wait_output(r"^listening$")
        programs.wait_reachable(place)
        with Process(place, [program, "client", place.address[4], port, "-n", count, "-a", "-l", "-m", 1],
                     settings=ends.settings, name="dial client") as client:
            finish([server, client], measure.PATIENCE)
    programs.expect_counted((server, client), "packets", count)
    done = rf"^done connections={count} .*\bopen={count} bytes_each=(\d+)"
    return [int(programs.expect(process, done, "what it served")[1]) for process in (server, client)]
