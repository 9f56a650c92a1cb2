"""What DCQCN's paper shows of PFC (Zhu et al., SIGCOMM 2015, 2.2 and 6.2; figures 3, 4, 8 and 9), on its testbed: who has how much
of a link that four senders share, and what becomes of a flow that goes elsewhere. And max-min's law of the parking lot, which
some transports keep and others do not.

Which paths flows take is chance: each seed is another draw of them."""

import pathlib
import statistics
import tempfile

from figure import Figure, jain, spread_of

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = pathlib.Path(__file__).resolve().parent


def rate(flow):
    """Gb/s of payload."""
    return 8000 * flow["bytes"] / flow["fct_ps"]


def shares(place, variant, seed, flows=None):
    """H1 to H3, and H4."""
    run = place.simulate(ROOT / "examples/parking-lot.yaml", cc=variant, seed=seed, flows=flows)
    *others, neighbour = map(rate, run["flows"])
    return others, neighbour, run


def parking_lot_of_pfc(place):
    """H4 ends first, and so all were there for as long: its rate is its share. It has a port of its own, the others one or two. Or
    two, of which one is not busy, since what comes by it has stood before in one queue with what comes by the other: then H1 and
    H2 have half of a port each, H4 has all of one, 2.5 ports in all."""
    draws = [shares(place, "pfc", seed + 1) for seed in range(place.seeds)]
    neighbours = [neighbour for _, neighbour, _ in draws]
    off_law = [neighbour for neighbour in neighbours if min(abs(neighbour / law - 1) for law in (40 / 2, 40 / 2.5, 40 / 3)) > 0.05]
    yield Figure("H4 at most", 20, max(neighbours), 0.05, "Gb/s")
    yield Figure("H4 at least", 40 / 3, min(neighbours), 0.05, "Gb/s")
    yield Figure("draws off the law", 0, len(off_law), 0)
    yield Figure("draws in which another is faster", 0, sum(max(others) > neighbour * 1.01 for others, neighbour, _ in draws), 0)
    yield Figure("packets lost", 0, sum(run["drops"] for _, _, run in draws), 0)


def parking_lot_of_dcqcn(place):
    """All begin at the line's rate, are cut, and come back; what it comes to is what flows twice as long have more, in more time."""
    settled, fairness, pauses = [], [], 0
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as twice:
        twice.write((ROOT / "examples/parking-lot_flows.csv").read_text().replace("100000000", "200000000"))
        twice.flush()
        for seed in range(place.seeds // 4 + 1):
            short, long = (shares(place, "dcqcn", seed + 1, flows)[2] for flows in (None, twice.name))
            settled += [8000 * (b["bytes"] - a["bytes"]) / (b["fct_ps"] - a["fct_ps"]) for a, b in zip(short["flows"], long["flows"])]
            fairness += [jain([*map(rate, long["flows"])])]
            pauses += long["pauses"]
    yield Figure("each, median", 10, statistics.median(settled), 0.1, "Gb/s", spread_of(settled))
    yield Figure("each, median, by law for payload", 40 / 4 * 1000 / 1082, statistics.median(settled), 0.05, "Gb/s")
    yield Figure("Jain, least", 1, min(fairness), 0.01)
    yield Figure("PAUSE frames", 0, pauses, None)


def victims(place, variant, senders, seeds, *settings):
    """Of each draw what the victim had, and pauses."""
    runs = [place.simulate(ROOT / "examples/victim-flow.yaml", f"workload.0.senders={senders}", *settings, cc=variant, seed=seed + 1)
            for seed in range(seeds)]
    return [rate(run["flows"][-1]) for run in runs], [run["pauses"] for run in runs]


def quartiles(values):
    first, _, third = statistics.quantiles(values, n=4)
    return first, third


def victim_of_pfc(senders, published):
    """The median of many draws, and quartiles."""
    def measure(place):
        rates, _ = victims(place, "pfc", senders, 2 * place.seeds + 1)
        median = statistics.median(rates)
        yield Figure("VS, median", published or median, median, 0.1 if published else None, "Gb/s", quartiles(rates))
    return measure


def victim_in_the_case_of_the_paper(place):
    """By law 40 / 2 comes to R by each port; half of it is H31's, or H32's, if they send; of the rest each of two has half, and VS
    as much as those with whom it stands in a queue."""
    for senders, law, published in ((4, 10, 10), (6, 5, 4.5)):
        (ours,), _ = victims(place, "pfc", senders, 1, f"network.file={HERE / 'victim_links.csv'}",
                             "network.switch.classes.all.limit=200kB")
        yield Figure(f"VS, {senders - 4} senders below T3, by law", law, ours, 0.06, "Gb/s")
        yield Figure(f"VS, {senders - 4} senders below T3", published, ours, 0.1, "Gb/s")


def victim_of_dcqcn(place):
    medians = []
    for senders in (4, 5, 6):
        rates, pauses = victims(place, "dcqcn", senders, place.seeds // 2 + 1)
        medians.append(statistics.median(rates))
        yield Figure(f"VS, {senders - 4} senders below T3, median; 20 are free", 20, medians[-1], None, "Gb/s", quartiles(rates))
        yield Figure("draws with PAUSE frames", 0, sum(count > 0 for count in pauses), None)
    yield Figure("what the senders below T3 take from it", 0, max(0, 1 - medians[2] / medians[0]), 0)


# ---- Max-min's parking lot -------------------------------------------------------------------------------------------

# A long flow by three links, each of which it shares with a short one. Who is stopped port by port keeps max-min's half; who
# listens to each link that is busy hears three of them, and takes less, towards a quarter (proportional fairness).
CHAIN = (("pfc", 0.05), ("credits", 0.05), ("dcqcn", None), ("dctcp", None), ("hpcc", None), ("swift", None), ("timely", None))


def chain(place):
    """What the long flow has while all are there, of what there is for payload."""
    for variant, tolerance in CHAIN:
        run = place.simulate(HERE / "chain.yaml", cc=variant)
        overhead = 90 if variant == "hpcc" else 82
        yield Figure(variant, 0.5, rate(run["flows"][0]) / 40 * (1000 + overhead) / 1000, tolerance, "of the link")
