"""What htsim's UEC comes to with its senders' windows (NSCC) and switches that trim, as the htsim project keeps it:
github.com/ultraethernet/uet-htsim at commit 40ccb05, sim/datacenter/validate_outputs/validate_uec_sender.out. htsim_uec.yaml has its
network and packets.

UEC sends single packets again, as selective repeat does, on 64 paths a flow, or as many as its command says, and leaves those that are
marked. Then ours may be a tenth off. With go-back-N what follows a lost packet is sent again, too, a packet that is lost twice waits for
the timeout, and a flow has one path: then completions are told, and judged only where htsim loses nothing, or where so many send that
the last port never rests."""

import pathlib
import statistics
import tempfile

from figure import Figure, spread_of

SCENARIO = pathlib.Path(__file__).resolve().parent / "htsim_uec.yaml"
PATHS = 64
# -cwnd 50: packets of 4,150 bytes.
FIFTY = "transport.first-window=207500"
# A sender whose only way out is shared by ten of its messages, two of them to whom others send as well.
OUTCAST = [(1, 0)] + [(source, to) for source, targets in ((2, [0, *range(4, 13)]), (3, [0, *range(13, 22)])) for to in targets]


def completions(run):
    return sorted(flow["fct_ps"] / 1_000_000 for flow in run["flows"])


TENTH = 0.1


def recovering(recovery, paths):
    """The settings of a recovery: of go-back-N a flow has one path."""
    return [f"transport.recovery={recovery}", *([f"transport.paths={paths}"] if recovery == "selective" else [])]


def simulate_list(place, recovery, flows, *settings, **how):
    """flows: (source, destination, bytes)."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write("src,dst,bytes,start_ns\n" + "".join(f"{src},{dst},{size},0\n" for src, dst, size in flows))
        file.flush()
        return place.simulate(SCENARIO, *recovering(recovery, PATHS), *settings, flows=file.name, **how)


def compare(published, draws, tolerance, resent=None):
    """published: the first and the last completion, us. draws: runs, each with its own paths."""
    times = [completions(run) for run in draws]
    for what, which, figure, allowed in (("first", 0, published[0], None), ("last", -1, published[1], tolerance)):
        each = [run[which] for run in times]
        yield Figure(f"{what} completion", figure, statistics.median(each), allowed, "us", spread_of(each))
    if resent is not None:
        yield Figure("packets sent again", resent, statistics.median(run["resent_packets"] for run in draws), None)


def allowed(recovery, tolerance):
    return tolerance if recovery != "selective" else min(tolerance or TENTH, TENTH)


def draws_of(place, simulate):
    return [simulate(seed) for seed in range(1, place.seeds // 4 + 2)]


def flows_of(list_of_flows, published, tolerance, *settings, resent=0):
    def make(recovery):
        def measure(place):
            draws = draws_of(place, lambda seed: simulate_list(place, recovery, list_of_flows, *settings, seed=seed))
            yield from compare(published, draws, allowed(recovery, tolerance), resent)
        return measure
    return make


def incast(senders, published, tolerance, resent, *settings):
    radix, target = {15: (4, 15), 127: (8, 33), 1023: (16, 0)}[senders]

    def make(recovery):
        def measure(place):
            draws = draws_of(place, lambda seed: place.simulate(SCENARIO, *recovering(recovery, PATHS), f"network.radix={radix}",
                                                                f"workload.0.senders={senders}", f"workload.0.target={target}",
                                                                *settings, seed=seed))
            yield from compare(published, draws, allowed(recovery, tolerance), resent)
        return measure
    return make


def permutation(paths, published, resent, *settings):
    """With go-back-N only on one path."""
    def make(recovery):
        def measure(place):
            draws = draws_of(place, lambda seed: place.simulate(SCENARIO, *recovering(recovery, paths), "workload.0.kind=permutation",
                                                                *settings, seed=seed))
            yield from compare(published, draws, allowed(recovery, None), resent)
        return measure if recovery == "selective" or paths == 1 else None
    return make


def sprayed(radix, published, tolerance):
    """Many paths a flow, to endpoints that are ideal."""
    def measure(place):
        draws = draws_of(place, lambda seed: place.simulate(SCENARIO, f"network.radix={radix}", "workload.0.kind=permutation",
                                                            cc="sprayed", seed=seed))
        yield from compare(published, draws, tolerance)
    return measure


def leaf_spine(uplinks):
    """Of 1,024, 32 to a leaf, as its topologies/leaf_spine_1024_oversub*.topo: a link to each spine."""
    return ("network.topology=leaf-spine", "network.radix=0", "network.leaves=32", "network.endpoints=1024",
            f"network.spines={uplinks}")


# name, seconds, what is measured with each recovery.
CASES = (
    ("one", 0.1, flows_of([(0, 13, 2_000_000)], (176.2, 176.2), 0.001)),
    ("both ways", 0.1, flows_of([(0, 13, 2_000_000), (13, 0, 2_000_000)], (176.804, 176.804), 0.001)),
    ("one to many, some to one", 0.2,
     flows_of([(src, dst, 2_000_000) for src, dst in OUTCAST], (208.019, 1638.08), 0.01, "network.radix=8")),
    ("15 to one", 0.5, incast(15, (1273.56, 2478.53), None, 811)),
    ("127 to one", 2, incast(127, (10787.9, 21029.3), 0.05, 72623, "transport.timeout=1ms")),
    ("1,023 to one, 100 kB", 2,
     incast(1023, (127.873, 10556.2), None, 448242, "transport.timeout=4ms", "workload.0.bytes=100kB", FIFTY)),
    ("a long one, then two to the same", 0.2,
     flows_of([(127, 0, 2_000_000), (95, 0, 250_000), (61, 0, 250_000)], (114.098, 221.731), None, "network.radix=8", FIFTY,
              resent=80)),
    ("permutation of 16, one path", 0.5, permutation(1, (178.443, 527.755), 279, "network.radix=4")),
    ("permutation of 16, 128 paths", 0.5, permutation(128, (187.97, 194.022), 0, "network.radix=4")),
    ("permutation of 1,024, one path", 10, permutation(1, (167.962, 889.92), 25621, "network.radix=16")),
    ("permutation of 1,024, 128 paths", 30, permutation(128, (167.619, 200.507), 0, "network.radix=16")),
    ("the same, four to a link, 128 paths", 15, permutation(128, (167.619, 785.774), 31934, *leaf_spine(8))),
    ("the same, eight to a link, 128 paths", 12, permutation(128, (167.312, 1443.43), 39531, *leaf_spine(4))),
)
SPRAYED = (
    ("permutation of 16, sprayed", 0.5, sprayed(4, (187.97, 194.022), 0.05)),
    ("permutation of 1,024, sprayed", 10, sprayed(16, (167.619, 200.507), 0.05)),
)
