"""What is done with the wheels: each check runs unmodified programs between two namespaces that a veth joins, and wants the
data right and its bytes in Verbena's summaries, for most of these programs take TCP in silence."""

import collections
import os
import pathlib
import re
import shutil

import places
import programs
from process import Failure, Process, finish

HERE = pathlib.Path(__file__).resolve().parent
# is_alone: between machines of one network; else each has another's interface beside it.
Check = collections.namedtuple("Check", "name group run is_alone")
CHECKS = []
BYTES, ROUNDS = 4 << 20, 5
SECONDS = 120


class Context:
    """What a check gets: a path between two places, and where things lie."""

    def __init__(self, world, environment, build, scratch, is_alone):
        self.environment = environment
        self.build = pathlib.Path(build)
        self.scratch = pathlib.Path(scratch)
        self.path = world.veth("wheels", 9000, None if is_alone else add_another_interface)
        self.figures = []

    def python(self, program, *arguments):
        return [self.environment.python, HERE.parents[1] / "examples/programs" / program, *arguments]

    def note(self, process):
        """Figures that a program printed, for the report."""
        self.figures += [line for line in process.stdout.splitlines() if re.search(r"MB/s|\d (us|ms)$", line)]


def add_another_interface(place):
    """As Docker's: it has the same address on every host, and leads to none of them."""
    for line in ("link add other0 type veth peer name other1", "addr add 172.17.0.1/16 dev other0", "link set other0 up",
                 "link set other1 up", f"route add default dev {interface_of(place)}"):
        place.run("ip", *line.split())


def interface_of(place):
    return place.device.removeprefix("vb_")


def check(name, group, is_alone=False):
    def enter(function):
        CHECKS.append(Check(name, group, function, is_alone))
        return function
    return enter


def settings_of(place, **more):
    """Of several networks the one is named that leads to the peer: programs that choose for themselves take any."""
    return {"VERBENA_DEVICES": place.device, **more}


def run_pair(context, server, client, settings=settings_of, listens=None):
    """Two processes, one at each end, from their start to their end. listens: TCP port to wait for before the client."""
    path = context.path
    with Process(path.server, server, settings=settings(path.server), name="server") as first:
        if listens:
            first.wait_listening(listens, 60)
        with Process(path.client, client, settings=settings(path.client), name="client") as second:
            finish([first, second], SECONDS)
    for process in (first, second):
        process.wait_output(r"^done$", 0)
    context.note(second)
    return first, second


def moved(text):
    """(bytes sent, received) of each process that used Verbena, by the summaries in text."""
    return [(int(sent), int(received)) for received, sent
            in re.findall(r"lane:.*\brx_bytes=(\d+).*\btx_bytes=(\d+)", text)]


def expect_moved(process, sent, received):
    seen = moved(process.stderr)
    if not any(out >= sent and into >= received for out, into in seen):
        raise Failure(f"{process.name} was to send {sent} and receive {received} bytes through Verbena; (sent, received): "
                      f"{seen or 'nothing'}\n{process.evidence()}")


# ---- NIXL ---------------------------------------------------------------------------------------------------------------

def run_nixl(context, **more):
    port = programs.next_port()

    def settings(place):
        return settings_of(place, UCX_TLS="rc_verbs,ud_verbs:aux", **more)

    def arguments(role):
        return context.python("nixl_peer.py", role, context.path.server.address[4], port, BYTES, ROUNDS)

    target, initiator = run_pair(context, arguments("target"), arguments("initiator"), settings)
    expect_moved(initiator, BYTES * ROUNDS, BYTES * ROUNDS)
    expect_moved(target, BYTES * ROUNDS, BYTES * ROUNDS)
    return target, initiator


@check("nixl: two agents read and write", "nixl")
def nixl(context):
    run_nixl(context)


@check("nixl: with UCX_FENCE_MODE=weak", "nixl")
def nixl_weak(context):
    run_nixl(context, UCX_FENCE_MODE="weak")


@check("nixl: 1% of the packets lost, then 1% late, with either recovery", "nixl")
def nixl_loss(context):
    for recovery in ("auto", "go-back-n"):
        for faults, counter in (("drop=1%,seed=7", "port_faults_dropped"), ("late=1%,late-by=200us,seed=7", "port_faults_late")):
            for process in run_nixl(context, VERBENA_FAULTS=faults, VERBENA_RECOVERY=recovery):
                if not process.stats().get(counter):
                    raise Failure(f"{faults} struck nothing\n{process.evidence()}")


def ucx_settings(context, **more):
    """libucx's ucx_perftest is built without verbs; nixl's UCX 1.23 has them and no programs. Its libraries have names of
    their own and find their modules by these, so both get the usual names in a folder."""
    packages = context.environment.packages()
    bundle, folder = packages / "nixl_cu12.libs", context.scratch / "ucx"
    (folder / "modules").mkdir(parents=True, exist_ok=True)
    for files, into in ((bundle.glob("libuc*.so.0.0.0"), folder), ((bundle / "ucx").glob("*.so.0.0.0"), folder / "modules")):
        for file in files:
            link = into / (re.split(r"[-.]", file.name)[0] + ".so.0")
            if not link.exists():
                link.symlink_to(file)
    return lambda place: settings_of(place, UCX_TLS="rc_verbs,ud_verbs:aux", LD_LIBRARY_PATH=f"{folder}:{bundle}",
                                     UCX_MODULE_DIR=str(folder / "modules"), **more)


def run_ucx_perftest(context, test, settings, judge):
    port, path = programs.next_port(), context.path
    program = [context.environment.packages() / "libucx/bin/ucx_perftest", "-p", port]
    with Process(path.server, program, settings=settings(path.server), name="server ucx_perftest") as server:
        server.wait_listening(port, 60)
        arguments = [*program, path.server.address[4], "-t", test, "-s", "65536", "-n", "100", "-w", "10"]
        with Process(path.client, arguments, settings=settings(path.client), name="client ucx_perftest") as client:
            judge(server, client)


@check("ucx: put and get of UCX 1.23, with UCX_FENCE_MODE=weak", "ucx")
def ucx_weak(context):
    for test, sent, received in (("ucp_put_bw", 100 << 16, 0), ("ucp_get", 0, 100 << 16)):
        def judge(server, client):
            finish([server, client], SECONDS)
            client.wait_output(r"^Final: +100 ", 0)
            expect_moved(client, sent, received)

        run_ucx_perftest(context, test, ucx_settings(context, UCX_FENCE_MODE="weak"), judge)


@check("ucx: without it the refusal says so", "ucx")
def ucx_refused(context):
    run_ucx_perftest(context, "ucp_get", ucx_settings(context),
                     lambda server, client: client.wait_output(r"refused access .*UCX_FENCE_MODE=weak", SECONDS))


# ---- Mooncake -----------------------------------------------------------------------------------------------------------

def run_mooncake(context, settings, device=lambda place: ()):
    port = programs.next_port()
    path = context.path

    def arguments(role, place):
        return context.python("mooncake_peer.py", role, place.address[4], path.server.address[4], port, 4 * BYTES, ROUNDS,
                              *device(place))

    target, initiator = run_pair(context, arguments("target", path.server), arguments("initiator", path.client), settings)
    for process in (target, initiator):
        expect_moved(process, 4 * BYTES * ROUNDS, 4 * BYTES * ROUNDS)


@check("mooncake: its engine reads and writes over the device that it is given", "mooncake")
def mooncake_named(context):
    run_mooncake(context, lambda place: {}, lambda place: (place.device,))


@check("mooncake: its engine takes the device that VERBENA_DEVICES leaves", "mooncake")
def mooncake_left(context):
    run_mooncake(context, settings_of)


@check("mooncake: its engine finds the only network's device itself", "mooncake", is_alone=True)
def mooncake_finds(context):
    run_mooncake(context, lambda place: {})


# ---- mpi4py -------------------------------------------------------------------------------------------------------------

def remote_shell(context):
    """What MPI's launchers take for ssh: it enters the namespace of the place that has the address."""
    file = context.scratch / "remote_shell"
    ends = "".join(f"{place.address[4]}) VERBENA_DEVICES={place.device} exec {' '.join(place.prefix)} sh -c \"$*\" ;;\n"
                   for place in (context.path.server, context.path.client))
    file.write_text(f'#!/bin/sh\nwhile [ "${{1#-}}" != "$1" ]; do shift; done\nhost=$1; shift\ncase $host in\n{ends}esac\n')
    file.chmod(0o755)
    return file


def run_mpi(context, launcher, switches, settings):
    if os.geteuid() != 0:
        raise places.Unavailable("MPI's launchers enter the other namespace, which needs root")
    if not shutil.which(launcher):
        raise places.Unavailable(f"{launcher} is not installed")
    place = context.path.server
    ranks = [place.launcher, "run", "--stats", "--", *context.python("mpi_ranks.py")]
    with Process(place, [launcher, *switches, *ranks], settings=settings, through_verbena=False, name="mpiexec") as process:
        process.wait_success(SECONDS)
    context.note(process)
    payload = 8 << 20
    seen = [ends for ends in moved(process.stderr) if min(ends) >= payload]
    if len(seen) != 2 or process.stdout.count("done") != 2:
        raise Failure(f"two ranks were to move {payload} bytes each way: {moved(process.stderr)}\n{process.evidence()}")


def hosts(context):
    return f"{context.path.server.address[4]},{context.path.client.address[4]}"


def library(name):
    """A library of the distribution, by its name alone."""
    for folder in (f"/usr/lib/{os.uname().machine}-linux-gnu", "/usr/lib64", "/usr/lib"):
        if os.path.exists(f"{folder}/{name}"):
            return f"{folder}/{name}"
    raise places.Unavailable(f"{name} is not installed")


def hydra_switches(context, bootstrap):
    return [bootstrap, "ssh", bootstrap + "-exec", remote_shell(context), "-iface", interface_of(context.path.server),
            "-hosts", hosts(context), "-n", "2", "-ppn", "1"]


@check("mpi4py: Intel MPI of impi-rt, over libfabric's verbs", "impi")
def intel_mpi(context):
    run_mpi(context, str(context.environment.program("mpiexec")), hydra_switches(context, "-bootstrap"),
            {"FI_PROVIDER": "verbs", "I_MPI_FABRICS": "ofi", "I_MPI_ROOT": str(context.environment.path)})


@check("mpi4py: the distribution's MPICH, over UCX", "mpi4py")
def mpich(context):
    # The wheel asks for the name that MPI implementations agreed on, which Debian's does not have.
    folder = context.scratch / "mpich"
    folder.mkdir(exist_ok=True)
    link = folder / "libmpi.so.12"
    if not link.exists():
        link.symlink_to(library("libmpich.so.12"))
    run_mpi(context, "mpiexec.mpich", hydra_switches(context, "-launcher"),
            {"UCX_TLS": "rc_verbs,ud_verbs:aux,self", "MPI4PY_MPIABI": "mpich", "MPI4PY_LIBMPI": str(link),
             "LD_LIBRARY_PATH": str(folder)})


@check("mpi4py: the distribution's Open MPI, over UCX", "mpi4py")
def open_mpi(context):
    settings = {"UCX_TLS": "rc_verbs,ud_verbs:aux,self", "MPI4PY_MPIABI": "openmpi", "MPI4PY_LIBMPI": library("libmpi.so.40"),
                "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    modules = {"plm_rsh_agent": remote_shell(context), "oob_tcp_if_include": interface_of(context.path.server) + ",vbt1",
               "pml": "ucx", "osc": "ucx", "opal_common_ucx_devices": "any", "opal_common_ucx_tls": "any"}
    switches = [part for name, value in modules.items() for part in ("--mca", name, value)]
    switches += [part for name in settings for part in ("-x", name)]
    run_mpi(context, "mpiexec.openmpi", [*switches, "--host", hosts(context), "-n", "2"], settings)


# ---- torch --------------------------------------------------------------------------------------------------------------

@check("torch: remote procedure calls over TensorPipe's ibv", "torch")
def torch_rpc(context):
    port = programs.next_port()

    def settings(place):
        return settings_of(place, GLOO_SOCKET_IFNAME=interface_of(place), TP_SOCKET_IFNAME=interface_of(place))

    def arguments(rank):
        return context.python("torch_rpc.py", rank, context.path.server.address[4], port)

    for process in run_pair(context, arguments(0), arguments(1), settings):
        expect_moved(process, 4 << 22, 4 << 22)


# ---- NCCL ---------------------------------------------------------------------------------------------------------------

@check("nccl: the calls of its InfiniBand transport (NCCL itself wants a GPU)", "nccl")
def nccl(context):
    program = context.build / "tests/wheels/nccl_calls"
    if not program.exists():
        raise places.Unavailable("nccl_calls was not built")
    port = programs.next_port()
    server, client = run_pair(context, [program, "server", port], [program, "client", context.path.server.address[4], port],
                              listens=port)
    expect_moved(client, 64 << 20, 0)
    expect_moved(server, 0, 64 << 20)
