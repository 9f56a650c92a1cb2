"""Live tests: congestion control of real QPs at a bottleneck that all of them share (VERBENA_FAULTS of the receiver).

A process that waits for a core sends less, and its round trips are longer. So rates are judged by the share of the CPU time that
the machine gave the processes of what they wanted: half of it, half of the rate."""

import contextlib
import re

import peers
import programs
from live import live_test
from process import Failure, Granted, finish

SECONDS = 6  # a run; its second half counts
SIZE = 16384
RATE = 200_000_000
QUEUE, KMIN, KMAX = 1_000_000, 50_000, 400_000
BOTTLENECK = f"rate=200Mb/s,queue={QUEUE},kmin={KMIN},kmax={KMAX},pmax=10%"
DCQCN = "dcqcn,line-rate=200Mb/s,rai=1Mb/s,min-rate=1Mb/s,increase-time=2ms,alpha-time=2ms,decrease-time=2ms,g=0.0625"


UNITS = {"b/s": 1, "kb/s": 1e3, "Mb/s": 1e6, "Gb/s": 1e9}


def rates(client):
    """(What its QP was paced at in the end, its mean) in bits a second, by the summary."""
    found = re.search(r"verbena: qp 0x[0-9a-f]+: RC, peer \S+ qpn 0x[0-9a-f]+, dcqcn, paced at (\S+ \w+/s), .* acknowledged "
                      r"at (\S+ \w+/s) on average, CNPs [1-9]", client.stderr)
    if not found:
        raise Failure(f"no rate of its QP\n{client.evidence()}")
    return [float(number) * UNITS[unit] for number, unit in map(str.split, found.groups())]


def check_rates(clients, flows, granted):
    """What is said of each QP is about its fair share: a mean in all of a run, a rate that goes up and down about it."""
    for paced, mean in map(rates, clients):
        if not granted * RATE / flows / 3 < mean < RATE / flows * 2 or not granted * RATE / flows / 10 < paced <= RATE:
            raise Failure(f"{flows} flows: {mean / 1e6:.1f} Mb/s on average, paced at {paced / 1e6:.1f} Mb/s")


def share(context, flows, algorithm):
    """Jain's index and the share of the rate of flows to one process in their second half, what its bottleneck counted, and the
    share of the CPU time that they wanted which they got."""
    path = context.world.open("veth1500")
    port = programs.next_port()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(peers.start_server(context, path.server, port, "-c", flows,
                                                        settings={"VERBENA_FAULTS": BOTTLENECK}))
        clients = [stack.enter_context(peers.start_client(context, path, port, "write", "-s", SIZE, "-t", SECONDS, "-e",
                                                          settings={"VERBENA_CC": algorithm})) for _ in range(flows)]
        with Granted([server] + clients, SECONDS / 2) as granted:
            finish([server] + clients, SECONDS + 30)
    if algorithm == DCQCN:
        check_rates(clients, flows, granted.share())
    moved = [int(re.search(r"later=(\d+)", client.stdout)[1]) for client in clients]
    jain = sum(moved) ** 2 / (len(moved) * sum(each * each for each in moved))
    return jain, sum(moved) * SIZE * 8 / (SECONDS / 2) / RATE, server.stats(), granted.share()


def judge(context, flows, algorithm):
    """What is said of such a run, and whether it shared fairly, used the rate, and kept the queue near its thresholds. Who begins
    at the line's rate may overflow it once, before the first CNP: that is some hundredths of a long run."""
    jain, used, counted, granted = share(context, flows, algorithm)
    mean, drops = counted.get("port_bottleneck_mean_bytes", 0), counted.get("port_bottleneck_drops", 0)
    lost = drops / counted["port_rx_segments"]
    said = f"{flows} flows, {algorithm}: Jain {jain:.3f}, {used:.0%} of the rate by {granted:.0%} of the CPU, queue {mean} on average, {lost:.1%} dropped"
    return said, jain > 0.95 and used > 0.6 * granted and KMIN / 4 < mean < KMAX and lost < 0.05


@live_test("a flow by swift, with its defaults, uses a slow bottleneck, and its queue stays short")
def swift(context):
    _, used, counted, granted = share(context, 1, "swift")
    mean = counted.get("port_bottleneck_mean_bytes", 0)
    if used < 0.6 * granted or mean > 100_000 / granted:
        raise Failure(f"{used:.0%} of the rate by {granted:.0%} of the CPU time that it wanted, queue {mean} on average")


@live_test("two, then eight flows share a bottleneck by DCQCN: fair, its queue near the thresholds; without any they do not")
def bottleneck(context):
    for flows, algorithm, is_well in ((2, DCQCN, True), (8, DCQCN, True), (8, "none", False)):
        said, seems_well = judge(context, flows, algorithm)
        if seems_well != is_well:
            raise Failure(said)
