"""Live tests: unmodified programs where one packet in a hundred is lost, or comes after later ones, at either end. Each row ends well
and verifies its data as far as its program can; a row in which no packet was struck fails.

`make check` runs each program once, with both. The bulk, each alone, worse faults and go-back-N, comes with
make conformance ARGS="--only-live --all-live --filter loss:"."""

import collections
import functools
import json
import pathlib
import shutil
import signal
import tempfile

import live_fabric
import live_ucx
import matrix
import peers
import places
import programs
from live import live_test
from process import Failure, Process, finish

SECONDS = 60
PATH = "veth9000"
Program = collections.namedtuple("Program", "name run parts_at_once")
PROGRAMS = []

BY_200_US = "late=1%,late-by=200us"
LATE = {"1% late": f"{BY_200_US},seed=7"}
LOST = {"1% lost": "drop=1%,seed=7"}
BOTH = {"1% lost and 1% late": f"drop=1%,{BY_200_US},seed=7"}
WORSE = {"5% lost": "drop=5%,seed=8", "1% lost in runs of ten": "drop=1%,burst=10,seed=8", "5% late by 1 ms": "late=5%,late-by=1ms,seed=8",
         "1% lost, 1% late, 1% twice, 1% reordered": f"drop=1%,{BY_200_US},dup=1%,reorder=1%,seed=8"}
GO_BACK = {"VERBENA_RECOVERY": "go-back-n"}


def program(name, parts_at_once=False):
    """Enters a function of a Context. parts_at_once: the program ends without a word to its peer, which waits in vain, on any adapter,
    where the last acknowledgement was lost: nothing is lost of it."""
    def enter(function):
        PROGRAMS.append(Program(name, function, parts_at_once))
        return function
    return enter


def need(name):
    if not shutil.which(name):
        raise places.Unavailable(f"{name} is not installed")


def open_path(context):
    path = context.world.open(PATH)
    if path is None:
        raise places.Unavailable(context.world.unavailable[PATH])
    return path


# ---- The programs ---------------------------------------------------------------------------------------------------

@program("rdma-core's pingpongs", parts_at_once=True)
def pingpongs(context):
    """They verify their messages."""
    path = open_path(context)
    for kind, option, size in (("ibv_rc_pingpong", "-c", 65536), ("ibv_rc_pingpong", "-e -c", 4096)):
        need(kind)
        programs.run_case(matrix.Case(kind, option, size, 0, PATH, 4, "root"), path, SECONDS)


@program("perftest")
def perftest(context):
    """It verifies nothing, and counts its completions. ib_send_lat -e is left out: it takes an answer to mean that its own message is
    acknowledged, and posts beyond its queue where that acknowledgement is lost."""
    path = open_path(context)
    for kind, option, size in (("ib_write_bw RC", "", 65536), ("ib_read_bw RC", "", 65536), ("ib_send_bw RC", "-e", 65536),
                               ("ib_send_bw RC", "", 1), ("ib_atomic_bw RC", "", 0), ("ib_write_lat RC", "", 4096), ("ib_send_lat RC", "", 4096)):
        need(kind.split()[0])
        programs.run_case(matrix.Case(kind, option, size, 0, PATH, 4, "root"), path, SECONDS)


@program("our own peer")
def every_operation(context):
    """What perftest does, every byte and every atomic verified."""
    for op, size, count in (("write", 70001, 200), ("read", 70001, 200), ("send", 33333, 200), ("atomic", 8, 500)):
        peers.run_verified(context, open_path(context), op, "-s", size, "-n", count, "-q", 3, seconds=SECONDS)


@program("UCX's io_demo")
def io_demo(context):
    """Storage over tagged and over active messages, each transfer and its order verified (-q). Its server serves for ever."""
    need("io_demo")
    path = open_path(context)
    for more in ((), ("-A",)):
        port = programs.next_port()

        def settings(place):
            return {"UCX_TLS": live_ucx.TRANSPORTS["rc_verbs"], "UCX_NET_DEVICES": f"{place.device}:1"}

        arguments = ["io_demo", "-q", "-d", "4096:262144", *more]
        with Process(path.server, [*arguments, "-p", port], settings={**settings(path.server), "VERBENA_LOG": "info"},
                     name="server io_demo") as server:
            server.wait_output("listening at", SECONDS)
            with Process(path.client, [*arguments, "-i", 300, "-w", 16, "-o", "read,write", f"{path.server.address[4]}:{port}"],
                         settings=settings(path.client), name="client io_demo") as client:
                client.wait_success(SECONDS)
            server.signal(signal.SIGINT)
            server.wait_success(SECONDS)
        programs.expect_counted((server, client), "bytes", 300 * 4096)
        programs.expect_way((server, client))


@program("ucx_perftest")
def ucx_perftest(context):
    """It verifies nothing; what runs over UCX does: io_demo, MPI, NIXL."""
    live_ucx.need(live_ucx.PERFTEST)
    for operation in live_ucx.OPERATIONS:
        live_ucx.run_perftest(open_path(context), "rc_verbs", operation)


@program("libfabric's fi_pingpong")
def fi_pingpong(context):
    """It verifies its messages. rxd is left out: over datagrams it is libfabric that makes losses good, and one in twenty of its runs
    ends in both waiting for ever (1.17)."""
    for layer in ("msg", "rxm"):
        live_fabric.pingpong(open_path(context), layer)


@program("MPI over UCX")
def mpi_over_ucx(context):
    """mpi_check verifies each byte."""
    live_ucx.run_over_ucx(context, 2, "root")


@program("MPI over libfabric")
def mpi_over_libfabric(context):
    live_fabric.run_over_libfabric(context, 2, "root")


@program("fio")
def fio(context):
    """Blocks carry checksums, which the receiver verifies. fio asks for no RNR retry, so its receiver has a receive for each block
    before the first comes; and where one end fails the other waits for ever."""
    need("fio")
    path, port, blocks = open_path(context), programs.next_port(), 512
    size = blocks << 16
    job = ["fio", "--ioengine=rdma", f"--port={port}", "--bs=64k", f"--size={size}", "--verify=crc32c", "--verify_state_save=0"]
    with Process(path.server, [*job, "--name=receiver", "--rw=read", f"--iodepth={blocks}", "--verify_fatal=1"],
                 settings={"VERBENA_LOG": "info"}, name="server fio") as server:
        server.wait_output("listening at", SECONDS)
        with Process(path.client, [*job, "--name=sender", "--rw=write", f"--hostname={path.server.address[4]}", "--verb=send",
                                   "--iodepth=8", "--iodepth_batch_complete=1", "--do_verify=0"], name="client fio") as client:
            finish([server, client], SECONDS)
    for process in (server, client):
        programs.expect(process, r"err= 0:", "a job without errors")
    programs.expect_counted((server, client), "bytes", size)
    programs.expect_way((server, client))


# ---- The rows -------------------------------------------------------------------------------------------------------

COUNTERS = {"drop": "port_faults_dropped", "late": "port_faults_late", "dup": "port_faults_doubled", "reorder": "port_faults_reordered",
            "burst": "port_faults_bursts"}


def expect_struck(file, faults):
    """By what all processes counted together, each fault that was asked for struck packets."""
    ports = [json.loads(line).get("port", {}) for line in file.read_text().splitlines()]
    for name in (item.split("=")[0] for item in faults.split(",")):
        if name in COUNTERS and not sum(port.get(COUNTERS[name], 0) for port in ports):
            raise Failure(f"{name} of {faults} struck no packet of {len(ports)} processes")


def run_row(run, faults, context):
    with tempfile.TemporaryDirectory(prefix="verbena-loss-") as folder:
        file = pathlib.Path(folder, "stats.json")
        context.world.settings = {**context.world.settings, "VERBENA_STATS_JSON": str(file)}  # before there is a place
        run(context)
        expect_struck(file, faults)


def enter_rows(faults, is_in_check, *, for_those_that_part=False, **more):
    for fault, spec in faults.items():
        for each in PROGRAMS:
            if each.parts_at_once == for_those_that_part:
                name = f"loss: {each.name}, {fault}" + "".join(f", {value}" for value in more.values())
                live_test(name, ({**more, "VERBENA_FAULTS": spec},), is_in_check)(functools.partial(run_row, each.run, spec))


enter_rows(LATE, True, for_those_that_part=True)
enter_rows(BOTH, True)
enter_rows({**LATE, **LOST, **WORSE}, False)
enter_rows({**LATE, **LOST, **BOTH}, False, **GO_BACK)
enter_rows(LATE, False, for_those_that_part=True, **GO_BACK)
