"""Programs that people run, over the wire, against their own TCP; perftest against bare UDP; and what connections cost. An end
has a core of its own. UCX and perftest run on loopback and over veths of three MTUs, the others on loopback and over the largest."""

import ceph
import ends as between
import measure
import programs
import services
import stacks
import transfers
from measure import Process, finish

KIB = 1024
MIB = 1024 * KIB
EVERY_PATH = ("lo", "veth 1500", "veth 4200", "veth 9000")
TWO_PATHS = ("lo", "veth 9000")
OF_BARE_UDP = 0.7  # what 1 MiB must reach where that is less than TCP
UCX_TESTS = {"tag_bw": "tag_bw", "put_bw": "ucp_put_bw", "get": "ucp_get"}
PAYLOADS = {"lo": 8448, "veth 1500": 1408, "veth 4200": 4096, "veth 9000": 8448}  # as ours: src/roce/large.h


def ends_of(bench, path):
    if path == "lo":
        return bench.wire
    made = bench.world.open(path.replace(" ", ""))
    if not made:
        raise measure.Failure(bench.world.unavailable[path.replace(" ", "")])
    return between.Ends(made.server, made.client, between.WIRE)


def on(paths, is_pinned=True):
    """A row that runs once on each of them: run(bench, ends, path, key of that). Pinned: each end on a core of its own."""
    def ends_at(bench, path):
        ends = ends_of(bench, path)
        return ends.pinned(bench.cores) if is_pinned else ends
    return lambda run: lambda bench: [run(bench, ends_at(bench, path), path, path.replace(" ", "_")) for path in paths]


# ---- UCX ------------------------------------------------------------------------------------------------------------


def ucx_bandwidth(name, test):
    @on(EVERY_PATH)
    def row(bench, ends, path, key):
        for size, label, count in ((64 * KIB, "64 KiB", 20000), (MIB, "1 MiB", 2000)):
            ours, tcp = (stacks.ucx(ends, test, size, count, way).gbps for way in ("verbena", "tcp"))
            text = f"ucx_perftest {name} {label}, {path}"
            if size == 64 * KIB:
                bench.figures.compare(f"ucx_{name}_{size}_{key}", text, "Gb/s", ours, tcp, at_least=1.0, **bound_of(name, path))
            else:
                against_udp(bench, ends, path, f"ucx_{name}_{size}_{key}", text, ours, tcp)
    return row


def bound_of(name, path):
    if (name, path) != ("tag_bw", "veth 1500"):
        return {}
    return {"bound": "47 packets, each with headers and a checksum of its own, where TCP hands over 64 KiB as one"}


def against_udp(bench, ends, path, key, text, ours, tcp):
    """TCP, or what of bare UDP is wanted where that is less."""
    udp = measure.raw_bandwidth(ends, bench.build, bench.seconds, PAYLOADS[path])
    bench.figures.add(key, ours, f"{text}, Verbena", "Gb/s")
    bench.figures.add(f"{key}_tcp", tcp, f"{text}, TCP", "Gb/s")
    bench.figures.add(f"{key}_udp", udp, f"{text}, bare UDP", "Gb/s")
    bench.figures.add(f"{key}_ratio", ours / min(tcp, OF_BARE_UDP * udp), f"{text}, of TCP or {OF_BARE_UDP} of bare UDP", "", at_least=1.0,
                      bound="a packet's headers and checksum, which bare UDP goes without, on the sender's core")


BARE_UDP_BESIDE = "bare UDP's ping-pong, one way, is printed beside it"


def add_bare_latency(bench, ends, path, key):
    bare = measure.raw_latency(ends, bench.build, 20000).p50
    bench.figures.add(key, bare, f"bare UDP 44 B, one way, {path}", "us")


@on(EVERY_PATH)
def tag_lat(bench, ends, path, key):
    for size in (8, 64, KIB):
        latency = [stacks.ucx(ends, "tag_lat", size, 20000, way).us for way in ("verbena", "tcp")]
        bench.figures.compare(f"ucx_tag_lat_{size}_{key}", f"ucx_perftest tag_lat {size} B, {path}", "us", *latency, at_most=1.1,
                              bound=BARE_UDP_BESIDE)
    add_bare_latency(bench, ends, path, f"udp_lat_{key}")


# ---- libfabric -----------------------------------------------------------------------------------------------------


FABRIC_BOUNDS = {
    "msg": "half a message is copied out while the other is copied in, where TCP's segments all are",
    "rxm": "it is five SENDs of 16 KiB and less, each acknowledged, where TCP's segments are copied out while others are copied in",
}


def fabric(layer):
    @on(TWO_PATHS)
    def row(bench, ends, path, key):
        if path == "lo":
            stacks.prepare_fabric(bench.wire.server)
        latency = [stacks.fabric(ends, 64, 5000, over, layer)[0] for over in (True, False)]
        bandwidth = [stacks.fabric(ends, 64 * KIB, 2000, over, layer)[1] for over in (True, False)]
        text = f"fi_pingpong {layer}"
        bench.figures.compare(f"fi_{layer}_64_{key}", f"{text} 64 B, one way, {path}", "us", *latency, at_most=1.1,
                              bound=BARE_UDP_BESIDE)
        add_bare_latency(bench, ends, path, f"fi_{layer}_udp_lat_{key}")
        bench.figures.compare(f"fi_{layer}_65536_{key}", f"{text} 64 KiB, {path}", "Gb/s", *bandwidth, at_least=1.0,
                              bound=FABRIC_BOUNDS[layer])
    return row


@on(("veth 9000",))
def fabric_rma(bench, ends, path, key):
    """Not on loopback: libfabric's verbs provider puts another interface's address in the place of 127.0.0.1."""
    for operation in ("write", "read"):
        name, text = f"fi_rma_{operation}_65536_{key}", f"fi_rma_bw {operation} 64 KiB, both ways at once, {path}"
        if not stacks.RMA_BW.exists():
            bench.figures.declare_absent(name, "make conformance-fabtests builds it", text, "Gb/s")
            continue
        gbps = [stacks.fabric_rma(ends, operation, 64 * KIB, 20000, over) for over in (True, False)]
        bench.figures.compare(name, text, "Gb/s", *gbps, at_least=1.0)


# ---- Key-value caches -------------------------------------------------------------------------------------------------


SPINNERS = ("four or five threads spin on two cores, and one that spins without a poll keeps its core for a slice of the scheduler, 3 to 4 ms; "
            "over TCP they sleep")


def transfer(library):
    """Each end has two threads that spin, and they wait for each other's locks: on one core they would wait for its scheduler."""
    @on(TWO_PATHS, is_pinned=False)
    def row(bench, ends, path, key):
        for block, label in ((64 * KIB, "64 KiB"), (MIB, "1 MiB")):
            rates = [transfers.move(ends, bench.build, library, over, block, bench.seconds) for over in (True, False)]
            for which, operation in enumerate(("read", "write")):
                ours, tcp = (rate[which] for rate in rates)
                bench.figures.compare(f"{library}_{operation}_{block}_{key}", f"{library} {operation}, 16 of {label}, {path}", "Gb/s", ours,
                                      tcp, at_least=0.8, bound=SPINNERS)
    return row


# ---- MPI ----------------------------------------------------------------------------------------------------------------


def allreduce(bench):
    """Both ranks in one namespace, as mpirun places them; it binds them to cores."""
    stacks.prepare_fabric(bench.wire.server)
    program = measure.built(bench.build, "bench/allreduce")
    for size, label, at_most in ((KIB, "1 KiB", 1.1), (4 * MIB, "4 MiB", 1.6)):
        took = [stacks.allreduce(bench.wire, program, way, size) for way in ("ucx", "tcp")]
        bench.figures.compare(f"mpi_allreduce_{size}", f"MPI_Allreduce {label}, lo", "us", *took, at_most=at_most)


def mpi_bandwidth(bench):
    """As above."""
    stacks.prepare_fabric(bench.wire.server)
    program = measure.built(bench.build, "bench/mpi_bandwidth")
    gbps = [stacks.mpi_bandwidth(bench.wire, program, way, MIB) for way in ("ucx", "tcp")]
    bench.figures.compare(f"mpi_bandwidth_{MIB}", "MPI_Isend 1 MiB, 16 at once, lo", "Gb/s", *gbps, at_least=0.9,
                          bound="bare UDP's rate is printed beside it")
    bare = measure.raw_bandwidth(bench.wire.pinned(bench.cores), bench.build, bench.seconds, PAYLOADS["lo"])
    bench.figures.add(f"mpi_bandwidth_{MIB}_udp", bare, "bare UDP, lo", "Gb/s")


# ---- perftest -------------------------------------------------------------------------------------------------------


@on(EVERY_PATH)
def send_8256(bench, ends, path, key):
    """As UCX cuts a message up where a link is slow: two packets and a bit. Posted one by one."""
    gbps = measure.rdma_bandwidth(ends, "ib_send_bw", 8256, bench.seconds).gbps
    bench.figures.add(f"send_8256_{key}", gbps, f"ib_send_bw 8,256 B, {path}", "Gb/s")


def perftest_mebibyte(program):
    @on(EVERY_PATH)
    def row(bench, ends, path, key):
        ours = measure.rdma_bandwidth(ends, program, MIB, bench.seconds).gbps
        tcp = measure.tcp_bandwidth(ends, MIB, bench.seconds).gbps
        against_udp(bench, ends, path, f"{program}_{MIB}_{key}", f"{program} 1 MiB, {path}", ours, tcp)
    return row


# ---- rsockets -------------------------------------------------------------------------------------------------------


def iperf3_over_rsockets(ends, seconds):
    """Gb/s of the receiver."""
    port = programs.next_port()
    words = [ends.server.launcher, "run", "--rsockets", "--", "iperf3", "--forceflush"]
    with Process(ends.server, [*words, "-s", "-1", "-p", port], settings=ends.settings, name="server iperf3") as server:
        server.wait_output("listening")
        with Process(ends.client, [*words, "-c", ends.server.address[4], "-p", port, "-t", seconds, "-f", "m"],
                     settings=ends.settings, name="client iperf3") as client:
            finish([server, client], measure.PATIENCE)
    programs.expect_counted((server, client), "bytes", seconds * MIB)
    return float(programs.expect(client, r"([\d.]+) Mbits/sec\s+receiver", "what was received")[1]) / 1e3


@on(TWO_PATHS)
def iperf3(bench, ends, path, key):
    ours, tcp = iperf3_over_rsockets(ends, bench.seconds), measure.tcp_bandwidth(ends, 128 * KIB, bench.seconds).gbps
    bench.figures.compare(f"rsockets_iperf3_{key}", f"iperf3 over rsockets, {path}", "Gb/s", ours, tcp, at_least=0.5)


# ---- Servers that sleep ----------------------------------------------------------------------------------------------


def redis(pipeline):
    @on(TWO_PATHS)
    def row(bench, ends, path, key):
        rate, cpu = zip(*(services.redis(ends, over, pipeline) for over in (True, False)))
        text = f"redis GET, pipelines of {pipeline}, {path}"
        bound = "half of the server's time is sendmsg and its way through the network stack, a datagram a reply"
        bench.figures.compare(f"redis_{pipeline}_{key}", text, "/s", *rate, at_least=0.8, bound=bound)
        bench.figures.compare(f"redis_{pipeline}_cpu_{key}", f"{text}, CPU a million", "s", *cpu, at_most=1.2, bound=bound)
    return row


@on(TWO_PATHS)
def nginx(bench, ends, path, key):
    rate, cpu = zip(*(services.nginx(ends, over) for over in (True, False)))
    bench.figures.compare(f"nginx_{key}", f"nginx 64 KiB, {path}", "/s", *rate, at_least=0.5)
    bench.figures.compare(f"nginx_cpu_{key}", f"nginx 64 KiB, {path}, CPU a GB", "s", *cpu, at_most=2.0)


@on(TWO_PATHS)
def grpc(bench, ends, path, key):
    unary, stream = zip(*(services.grpc(ends, over) for over in (True, False)))
    bench.figures.compare(f"grpc_unary_{key}", f"gRPC unary call, {path}", "us", *unary, at_most=1 / 0.8)
    bench.figures.compare(f"grpc_stream_{key}", f"gRPC stream of 1 KiB, {path}", "/s", *stream, at_least=0.8)


@on(TWO_PATHS)
def iser(bench, ends, path, key):
    for blocks, label in ((8, "4 KiB"), (128, "64 KiB")):
        rate, cpu = zip(*(services.iscsi(ends, over, blocks) for over in (True, False)))
        text = f"iscsi-perf {label} of tgt, {path}"
        bench.figures.compare(f"iser_{blocks}_{key}", text, "/s", *rate, "iSCSI", at_least=1.0)
        bench.figures.compare(f"iser_{blocks}_cpu_{key}", f"{text}, CPU a GB", "s", *cpu, "iSCSI", at_most=1.2)


@on(TWO_PATHS)
def rados(bench, ends, path, key):
    ours, posix = (ceph.rados(ends, over) for over in (True, False))
    bound = "Ceph copies all into buffers of 128 KiB before it sends it, and out of them: TCP goes without both"
    for way, wanted, verbena, tcp in zip(("write", "read"), (1.0, 0.6), ours, posix):
        rate, cpu = zip(verbena, tcp)
        text = f"rados bench {way} 1 MiB, {path}"
        bench.figures.compare(f"rados_{way}_{key}", text, "MB/s", *rate, "async+posix", at_least=wanted, bound=bound)
        bench.figures.compare(f"rados_{way}_cpu_{key}", f"{text}, CPU a GB", "s", *cpu, "async+posix", at_most=1.2, bound=bound)


# ---- Connections ----------------------------------------------------------------------------------------------------

COUNT = 1000  # at once


def connections(bench):
    phases, seconds = stacks.cmtime(bench.wire, COUNT)
    add = bench.figures.add
    add("connections_per_second", COUNT / seconds, f"cmtime, {COUNT:,} connections at once, made and ended", "/s")
    for phase, took in phases.items():
        add(f"cmtime_{phase.replace(' ', '_')}_us", took, f"cmtime, {phase}, each", "us")
    memory = stacks.connection_memory(bench.wire, measure.built(bench.build, "tests/conformance/dial"), COUNT)
    for end, resident in zip(("server", "client"), memory):
        add(f"bytes_per_connection_{end}", resident, f"memory of an open connection and its buffers, {end}", "bytes")


ROUNDS = {**{name.replace("_", "-"): ucx_bandwidth(name, test) for name, test in UCX_TESTS.items()}, "tag-lat": tag_lat,
          "fi-msg": fabric("msg"), "fi-rxm": fabric("rxm"), "fi-rma": fabric_rma,
          "nixl": transfer("nixl"), "mooncake": transfer("mooncake"), "allreduce": allreduce,
          "mpi-bandwidth": mpi_bandwidth, "send-8256": send_8256,
          "write-1m": perftest_mebibyte("ib_write_bw"), "read-1m": perftest_mebibyte("ib_read_bw"), "iperf3": iperf3,
          "redis-1": redis(1), "redis-16": redis(16), "nginx": nginx, "grpc": grpc, "iser": iser, "rados": rados,
          "connections": connections}
