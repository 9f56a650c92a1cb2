#!/usr/bin/env python3
"""loss: what lost packets cost, with each recovery that is named.

- htsim's UEC (htsim_uec.py): NSCC and switches that trim, beside the figures that its project keeps.
- The victim of an incast of seven (examples/incast-victim.yaml), beside what MRC's paper says of NICs.
- Curves: goodput, and completions of small messages, where links lose packets by chance (loss.yaml), beside what IRN, Falcon and
  MRC have published of their own.

    make validate-loss
    make validate-loss ARGS="--only curves --recovery go-back-n --recovery go-back-0"
    make validate-loss ARGS="--only '15 to one*' --seeds 20"

The exit status is 1 when a row that is judged misses."""

import argparse
import fnmatch
import pathlib
import statistics
import sys

import htsim_uec
from figure import Figure, percentile
from golden import Failure, Place, Row, measure_rows

HERE = pathlib.Path(__file__).resolve().parent
SCENARIO = HERE / "loss.yaml"
HOSTS = 8
LOSSES = ("0", "0.001%", "0.01%", "0.1%", "1%")
# Of the papers, in the words of their abstracts and figures; no table of them has this network.
PUBLISHED = """IRN (SIGCOMM 2018): selective repeat without pauses does 6 to 83% better than go-back-N with pauses.
Falcon (SIGCOMM 2025): goodput under loss is 65% above that of go-back-N in a NIC, completion under congestion up to 8 times shorter.
MRC (arXiv 2605.04333), of large messages: 0.1% lost changes little, with 1% a third of the line is left; RoCE is unusable with 1%."""
FALCON = 1.65


def rows(recoveries):
    made = [Row(f"{name}, {recovery}", seconds, make(recovery)) for recovery in recoveries
            for name, seconds, make in htsim_uec.CASES if make(recovery)]
    made += [Row(name, seconds, measure) for name, seconds, measure in htsim_uec.SPRAYED]
    return made + [Row(f"victim of seven to one, {variant}", 2, victim(variant, published, tolerance))
                   for variant, published, tolerance in VICTIMS]


# Gb/s of 400 (arXiv 2605.04333): pauses alone leave 30 to 100, of which this is the middle; DCQCN takes a quarter, MRC nothing.
VICTIMS = (("pfc", 65, 35 / 65), ("dcqcn", 300, None), ("nscc", 400, None), ("uet-like", 400, 0.05))


def victim(variant, published, tolerance):
    """Of draws in which it shares a link with one of the seven: in the others nothing is to be seen. By many paths all are such."""
    def measure(place):
        scenario = HERE.parent.parent / "examples/incast-victim.yaml"
        rates = [8000 * flow["bytes"] / flow["fct_ps"] for seed in range(place.seeds + 1)
                 for flow in place.simulate(scenario, cc=variant, seed=seed + 1)["flows"][-1:]]
        shares = [rate for rate in rates if rate < 0.95 * max(rates)] or rates
        yield Figure("victim that shares a link, median", published, statistics.median(shares), tolerance, "Gb/s",
                     (min(shares), max(shares)))
        yield Figure("victim, median of all", published, statistics.median(rates), None, "Gb/s", (min(rates), max(rates)))
    return measure


# ---- Curves -------------------------------------------------------------------------------------------------------------

def faults(loss):
    """Each host's link, both ways."""
    if loss == "0":
        return []
    return [setting for host in range(HOSTS)
            for setting in (f"network.faults.{host}.link=endpoint {host}", f"network.faults.{host}.loss={loss}")]


def runs(place, variant, recovery, loss, seeds):
    return [place.simulate(SCENARIO, f"transport.recovery={recovery}", *faults(loss), cc=variant, seed=seed + 1)
            for seed in range(seeds)]


def goodput(place, recovery, loss, seeds):
    """Gb/s of a flow, the mean of all."""
    return statistics.mean(8000 * flow["bytes"] / flow["fct_ps"] for run in runs(place, "bulk", recovery, loss, seeds)
                           for flow in run["flows"])


def tail(place, recovery, loss, seeds):
    """The completion of messages of 64 KiB, in us: median and p99."""
    times = [flow["fct_ps"] / 1e6 for run in runs(place, "messages", recovery, loss, seeds) for flow in run["flows"]]
    return percentile(times, 0.5), percentile(times, 0.99)


def cell(place, recovery, loss, seeds, lossless):
    """The share of lossless goodput, the three columns, and why there is nothing in them."""
    try:
        share = goodput(place, recovery, loss, seeds) / lossless
        p50, p99 = tail(place, recovery, loss, seeds)
    except Failure as failure:
        return None, "- | - | -", f"{recovery}, {loss}: {str(failure).splitlines()[-1]}"
    return share, f"{share:.3f} | {p50:,.1f} | {p99:,.1f}", None


def curves(place, recoveries, seeds):
    lossless = goodput(place, "go-back-n", "0", 1)
    print(f"\nEight hosts, {lossless:.1f} Gb/s each without loss; of messages of 64 KiB, 30% load, us")
    print("| loss | " + " | ".join(f"{name}: of lossless | p50 | p99" for name in recoveries) + " | by 65% more than go-back-n |")
    print("|---" * (3 * len(recoveries) + 2) + "|")
    reasons = []
    for loss in LOSSES:
        cells = {name: cell(place, name, loss, seeds, lossless) for name in recoveries}
        base = cells["go-back-n"][0] if "go-back-n" in cells else None
        target = f"{min(1, FALCON * base):.3f}" if base else "-"
        print(f"| {loss} | " + " | ".join(text for _, text, _ in cells.values()) + f" | {target} |", flush=True)
        reasons += [why for _, _, why in cells.values() if why]
    print("\n".join(["", *reasons, PUBLISHED]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build")
    parser.add_argument("--recovery", action="append", metavar="NAME", help="of transport.recovery; selective, of curves go-back-n, too")
    parser.add_argument("--only", action="append", metavar="ROW", help="names, patterns, or curves")
    parser.add_argument("--not-above", type=float, metavar="SECONDS", help="leave out what takes longer, and the curves")
    parser.add_argument("--seeds", type=int, default=20, help="of curves, and four for each draw of paths")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    recoveries = options.recovery or ["selective"]
    is_wanted = lambda name: not options.only or any(fnmatch.fnmatch(name, only) for only in options.only)
    chosen = [row for row in rows(recoveries) if is_wanted(row.name)
              and (options.not_above is None or row.seconds <= options.not_above)]
    with_curves = is_wanted("curves") and options.not_above is None
    if options.list:
        print("\n".join([f"{row.name:50} about {row.seconds} s" for row in chosen] + ["curves"] * with_curves))
        return 0
    place = Place(options.build.resolve(), HERE, options.seeds)
    missed = measure_rows(chosen, place)[1] if chosen else []
    if with_curves:
        curves(place, options.recovery or ["go-back-n", "selective"], max(1, options.seeds // 4))
    return 1 if missed or not (chosen or with_curves) else 0


if __name__ == "__main__":
    sys.exit(main())
