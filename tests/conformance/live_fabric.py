"""Live tests: libfabric's verbs provider, unmodified: fi_info and fi_pingpong over connections, over datagrams, and over
reliable datagrams on either. A provider that is named is not left for TCP; the summaries say so all the same."""

import re
import shutil
import socket
import subprocess

import places
import programs
from live import BOTH, MEMORY, live_test
from live_ucx import run_mpi
from process import Failure, Process

# layer: provider, endpoint, sizes in its table: datagrams end at the path's MTU
LAYERS = {"msg": ("verbs", "msg", "64 256 1k 4k 64k 1m"), "rxm": ("verbs;ofi_rxm", "rdm", "64 256 1k 4k 64k 1m"),
          "dgram": ("verbs", "dgram", "64 256 1k"), "rxd": ("verbs;ofi_rxd", "rdm", "64 256 1k 4k 64k 1m")}
ROUNDS = 10
SECONDS = 40
# On loopback libfabric has connections only where lo has an address besides ::1 and 127.0.0.1.
LOOPBACK_ADDRESS = "fd79:79::1/128"
MPI_SWITCHES = "--oversubscribe --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs;ofi_rxm --mca osc "


def windows_of_mpi():
    """(switches, part of mpi_check's bytes that are not windows'). Within one host Open MPI would put windows into shared
    memory. Up to version 4 it can be told to make messages of them; later versions have no such way over libfabric."""
    shown = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout
    found = re.search(r"(\d+)\.\d+", shown)
    return ("pt2pt", 1.0) if found and int(found[1]) < 5 else ("^sm", 0.6)


def need(program):
    if not shutil.which(program):
        raise places.Unavailable(f"{program} is not installed")
    try:
        socket.getaddrinfo("localhost", None)
    except OSError:
        raise places.Unavailable("libfabric binds to \"localhost\", and /etc/hosts does not have it") from None


def open_veth(context):
    path = context.world.open("veth1500")
    if path is None:
        raise places.Unavailable(context.world.unavailable["veth1500"])
    return path


def without_ipv4(place):
    place.run("ip", "-4", "addr", "flush", "dev", place.device.removeprefix("vb_"))


def pingpong(path, layer, version=4, user="root"):
    need("fi_pingpong")
    provider, endpoint, sizes = LAYERS[layer]
    address = path.server.address[version]
    port = programs.next_port()
    arguments = ["fi_pingpong", "-p", provider, "-e", endpoint, "-I", ROUNDS, "-c"] + (["-6"] if version == 6 else [])
    server, client = programs.run_pair(path, [*arguments, "-B", port], [*arguments, "-P", port, address], user, port,
                                       SECONDS)
    for process in (server, client):
        found = re.findall(rf"^(\w+)\s+{ROUNDS}\s+={ROUNDS}\s", process.stdout, re.M)
        if not set(sizes.split()) <= set(found):
            raise Failure(f"{process.name}: rows for {found}, expected {sizes}\n{process.evidence()}")
    largest = 1 << 20 if endpoint != "dgram" else 1 << 10
    programs.expect_counted((server, client), "bytes", 2 * ROUNDS * largest)
    programs.expect_way((server, client))


@live_test("libfabric: fi_info lists connections, datagrams and the layers above them, for everyone")
def listed(context):
    need("fi_info")
    place = open_veth(context).server
    for user in ("root", "nobody"):
        for provider, kind in (("verbs", "FI_EP_MSG"), ("verbs", "FI_EP_DGRAM"), ("verbs;ofi_rxm", "FI_EP_RDM")):
            with Process(place, ["fi_info", "-v", "-p", provider, "-t", kind], user) as process:
                process.wait_success(SECONDS)
            programs.expect(process, rf"^ +name: {place.device}", f"{kind} of {provider} on {place.device}")
            if kind != "FI_EP_DGRAM":
                programs.expect(process, rf"fi_sockaddr_in://{re.escape(place.address[4])}:0", "the IPv4 address")
                programs.expect(process, rf"fi_sockaddr_in6://\[{place.address[6]}\]:0", "the IPv6 address")


def enter_pingpong(layer):
    provider, endpoint, _ = LAYERS[layer]

    @live_test(f"libfabric: fi_pingpong -p \"{provider}\" -e {endpoint} over a veth, IPv4 and IPv6 alone")
    def over_veth(context):
        pingpong(open_veth(context), layer)
        pingpong(context.world.veth("six" + layer, 1500, without_ipv4), layer, version=6)


for each in LAYERS:
    enter_pingpong(each)


@live_test("libfabric: fi_pingpong within one host, as an ordinary user", BOTH)
def one_host(context):
    place = open_veth(context).server
    for layer in LAYERS:
        pingpong(places.Path("one host", place, place, 1024), layer, user="nobody")


@live_test("libfabric: fi_pingpong on loopback: datagrams, and connections where it has an address of its own", BOTH)
def loopback(context):
    place = context.world.fresh_namespace("fabric")
    path = places.Path("loopback", place, place, 4096)
    pingpong(path, "dgram")
    place.run("ip", "addr", "add", LOOPBACK_ADDRESS, "dev", "lo")
    pingpong(path, "msg")
    pingpong(path, "rxm", user="nobody")


def run_over_libfabric(context, ranks, user):
    need("mpirun")
    place = context.world.fresh_namespace("mpi")
    place.run("ip", "addr", "add", LOOPBACK_ADDRESS, "dev", "lo")
    windows, part = windows_of_mpi()
    run_mpi(context, place, ranks, user, MPI_SWITCHES + windows, {}, part)


for ranks_wanted in (2, 3, 4):
    live_test(f"Open MPI over libfabric: {ranks_wanted} ranks reduce, send, put, get and accumulate",
              BOTH if ranks_wanted == 3 else (MEMORY,))(
        lambda context, ranks=ranks_wanted: run_over_libfabric(context, ranks, "root"))
live_test("Open MPI over libfabric as an ordinary user")(lambda context: run_over_libfabric(context, 2, "nobody"))
