"""What htsim comes to, where its transport is comparable: its RoCE (htsim_roce), which has no congestion control, and spraying
by its UEC (htsim_uec). github.com/ultraethernet/uet-htsim at commit 40ccb05, in its sim/datacenter:

    OPTIONS="-strat ecmp_host -paths 128 -linkspeed 100000 -hop_latency 1 -queue_type lossless_input -mtu 4064 -end 40000"
    htsim_roce $OPTIONS -q 1000 -nodes 16 -tm connection_matrices/incast.cm
    htsim_roce $OPTIONS -q 1000 -nodes 128 -tm connection_matrices/incast_128.cm
    htsim_roce $OPTIONS -q 1000 -nodes 1024 -tm connection_matrices/perm_1024n_1024c_0u_2000000b.cm -seed 1     # to 5
    htsim_roce $OPTIONS -q 5000 -pfc_thresholds 1800 1900 ... -seed 1                                           # nobody is paused

What it says in whole packets is whole packets here, too (htsim.yaml). Its ECMP is by another hash, and ours has another permutation
for each seed: distributions."""

import pathlib
import statistics

from figure import Figure, percentile, spread_of

SCENARIO = pathlib.Path(__file__).resolve().parent / "htsim.yaml"
SHARES = ((0.5, "p50", 0.03), (0.95, "p95", 0.15), (0.99, "p99", 0.25), (1, "last", None))

# us; of permutations the medians of the seeds.
ALONE = 176.49
INCAST = {15: 2450.49, 127: 20685.0}
PERMUTATION = {None: (483.1, 666.4, 830.2, 993.1), "pfc": (511.8, 890.2, 1072, 1214)}
# htsim_roce -strat ecmp_rr -out_of_order, nobody paused: what comes too much out of order is sent again, and so the half only.
SPRAYED_HALF = 192.3
# htsim_uec with a random path for each packet, "oblivious", as the project keeps it: first and last of 1,024, us.
SPRAYED = {"receivers' credits": (168.657, 208.781), "senders' windows": (167.831, 212.794)}


def completions(run):
    return sorted(flow["fct_ps"] / 1_000_000 for flow in run["flows"])


def permutations(place, variant):
    return [completions(place.simulate(SCENARIO, cc=variant, seed=seed + 1)) for seed in range(place.seeds // 4 + 1)]


def incast(senders):
    """To one, on a tree of so many and one: the last completion, which is a matter of arithmetic if the last port never rests."""
    def measure(place):
        radix, target = {1: (4, 15), 15: (4, 15), 127: (8, 33)}[senders]
        run = place.simulate(SCENARIO, f"network.radix={radix}", "workload.0.kind=incast", f"workload.0.senders={senders}",
                             f"workload.0.target={target}", cc="pfc")
        yield Figure("last completion", INCAST.get(senders, ALONE), completions(run)[-1], 0.0001, "us")
        yield Figure("packets lost", 0, run["drops"], 0)
    return measure


def permutation(variant):
    """Each flow by one way that a hash chooses."""
    def measure(place):
        draws = permutations(place, variant)
        for (share, name, tolerance), published in zip(SHARES, PERMUTATION[variant]):
            each = [percentile(times, share) for times in draws]
            yield Figure(f"completion, {name}", published, statistics.median(each), tolerance, "us", spread_of(each))
    return measure


def spraying(place):
    draws = permutations(place, "spray")
    halves = [times[len(times) // 2] for times in draws]
    yield Figure("completion, p50, RoCE in any order", SPRAYED_HALF, statistics.median(halves), 0.03, "us", spread_of(halves))
    firsts, lasts = ([times[which] for times in draws] for which in (0, -1))
    for whose, (first, last) in SPRAYED.items():
        yield Figure(f"first completion, {whose}", first, statistics.median(firsts), 0.03, "us", spread_of(firsts))
        yield Figure(f"last completion, {whose}", last, statistics.median(lasts), 0.05, "us", spread_of(lasts))
