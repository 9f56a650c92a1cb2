#!/usr/bin/env python3
"""golden: `verbena sim` beside figures that others have published, or got from their simulators. Each row is run, and printed
with what is published, what came, how far they are apart, what is allowed (a share, and what chance makes of it) and the verdict;
docs/fabric-validation.md says what the misses mean. The exit status is 1 when a row that is not known to miss does.

    make validate-fabric                                  # all of it, several minutes
    make validate-fabric ARGS="--list"
    make validate-fabric ARGS="--only 'dcqcn/*' --not-above 5"        # what takes seconds

The runs of HPCC's authors' simulator (ns-3) are read from --data: a folder with flows/ and fct/. Without it, from
shared/reference/fabric-data/hpcc-ns3 above this checkout, and where there is none, what lies beside this file."""

import argparse
import collections
import csv
import fnmatch
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import fixed_point as fixed_point_law
import htsim
import micro
import standstill
import testbed
from figure import Figure, jain, percentile, spread_of

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = pathlib.Path(__file__).resolve().parent
PATIENCE = 3600

# seconds: about what it takes. known: why it misses, as the document has it; it then fails when it holds no more.
Row = collections.namedtuple("Row", "name seconds measure known", defaults=(None,))


class Failure(Exception):
    pass


class Absent(Exception):
    pass


class Place:
    """Where things are, and how often what goes by chance is run."""

    def __init__(self, build, data, seeds):
        self.build, self.verbena = build, build / "src/cli/verbena"
        self.data, self.seeds = data, seeds

    def simulate(self, scenario, *settings, flows=None, cc=None, seed=1, end="done"):
        command = [self.verbena, "sim", scenario, "--json", "--no-progress", "--no-check"]
        command += ["--flows", flows] if flows else []
        command += ["--cc", cc] if cc else []
        command += [word for setting in (f"run.seed={seed}", *settings) for word in ("--set", setting)]
        done = subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=PATIENCE)
        if done.returncode not in (0, 3, 4) or not done.stdout:
            raise Failure(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr}")
        result = json.loads(done.stdout)
        if result["end"] != end or result["flows_failed"]:
            raise Failure(f"it ended with {result['end']}, {result['flows_failed']} flows failed")
        return result


# ---- HPCC's authors' simulator ----------------------------------------------------------------------------------------

PUBLISHED_AS = {"hpcc": "hp"}


def golden_name(flows, cc):
    return f"{flows}_{PUBLISHED_AS.get(cc, cc)}"


def golden_flows(place, name):
    """Of each flow of a published run: (src, dst, bytes, start) -> (fct, ideal), in ns; starts there are cut off."""
    path = place.data / "fct" / f"{name}.csv"
    if not path.exists():
        raise Absent(f"{path} is not there")
    with open(path) as file:
        return [{key: int(value) for key, value in row.items()} for row in csv.DictReader(file)]


def our_flows(place, flows, cc, *settings, seed=1):
    """cc: one of the example's variants."""
    result = place.simulate(ROOT / "examples/hpcc-fattree320.yaml", *settings, flows=place.data / "flows" / f"{flows}.csv", cc=cc,
                            seed=seed)
    for flow in result["flows"]:
        flow["fct_ns"] = flow["fct_ps"] / 1000
        flow["start_ns"] = flow["start_ps"] / 1000
    return result


def last(flows):
    return max(flow["start_ns"] + flow["fct_ns"] for flow in flows)


def completions(flows, cc, *settings, pauses=None, tolerance=0.01, by_chance=False):
    """The last completion; for the eye the first, the median and how fair it was. by_chance: marks and paths are drawn, and the
    published run is one draw; ours is the median of several."""
    def measure(place):
        golden = golden_flows(place, golden_name(flows, cc))
        runs = [our_flows(place, flows, cc, *settings, seed=seed + 1) for seed in range(place.seeds if by_chance else 1)]
        lasts = [last(run["flows"]) / 1000 for run in runs]
        yield Figure("last completion", last(golden) / 1000, statistics.median(lasts), tolerance, "us", spread_of(lasts))
        if len(golden) > 1:
            theirs = [flow["fct_ns"] / 1000 for flow in golden]
            for what, of, unit in (("first", min, "us"), ("median", statistics.median, "us"),
                                   ("Jain of 1/FCT", lambda fcts: jain([1 / fct for fct in fcts]), "")):
                ours = [of([flow["fct_ns"] / 1000 for flow in run["flows"]]) for run in runs]
                yield Figure(what, of(theirs), statistics.median(ours), None, unit, spread_of(ours))
        ours = [run["pauses"] for run in runs]
        yield Figure("PAUSE frames", pauses or 0, statistics.median(ours), None if pauses else 0, "", spread_of(ours))
    return measure


def by_phase(flows, cc, later):
    """Of flows that begin at one moment, whose packets come at one moment again and again: which goes first decides more than it
    should. Ours with the last of the list later by so many ns each: the median of these."""
    def measure(place):
        golden = golden_flows(place, f"{flows}_{cc}")
        fcts = []
        for nanoseconds in later:
            with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
                lines = (place.data / "flows" / f"{flows}.csv").read_text().split()
                file.write("\n".join(lines[:-1] + [lines[-1].rsplit(",", 1)[0] + f",{nanoseconds}"]) + "\n")
                file.flush()
                ours = place.simulate(ROOT / "examples/hpcc-fattree320.yaml", flows=file.name, cc=cc)["flows"]
            fcts.append([flow["fct_ps"] / 1000000 for flow in ours])
        for what, of, tolerance in (("last completion", max, 0.01), ("first", min, None)):
            each = [of(run) for run in fcts]
            yield Figure(what, of(flow["fct_ns"] for flow in golden) / 1000, statistics.median(each), tolerance, "us", spread_of(each))
    return measure


def slowdowns(golden, ours):
    """Of both, by the published ideal."""
    ideal = {}
    for flow in golden:
        ideal.setdefault((flow["src"], flow["dst"], flow["bytes"]), flow["ideal_ns"])
    of = lambda flows: [max(1.0, flow["fct_ns"] / ideal[flow["src"], flow["dst"], flow["bytes"]]) for flow in flows]
    return of(golden), of(ours)


SHARES = ((0.5, "p50", 0.03), (0.95, "p95", 0.15), (0.99, "p99", 0.25))
SIZES = ((0, 1000, "up to 1 kB"), (1000, 10000, "1-10 kB"), (10000, 100000, "10-100 kB"), (100000, 1000000, "100 kB-1 MB"))


def distribution(flows, cc, *settings, golden=None, by_size=False):
    """Slowdowns, as paths are hashed otherwise. golden: the name of the published run, if it is not flows_cc."""
    def measure(place):
        theirs, mine = golden_flows(place, golden or golden_name(flows, cc)), our_flows(place, flows, cc, *settings)
        published, ours = slowdowns(theirs, mine["flows"])
        for share, name, tolerance in SHARES:
            yield Figure(f"slowdown {name}", percentile(published, share), percentile(ours, share), tolerance)
        for least, most, label in SIZES if by_size else ():
            pick = lambda flows, values: [value for flow, value in zip(flows, values) if least < flow["bytes"] <= most]
            old, new = pick(theirs, published), pick(mine["flows"], ours)
            for share, name, _ in SHARES:
                yield Figure(f"{label}, {name}", percentile(old, share), percentile(new, share), None)
        yield Figure("PAUSE frames", 0, mine["pauses"], None)
    return measure


def short_flows(*order):
    """The slowdown of flows up to 1 kB at the 99th percentile, from the lowest to the highest."""
    def measure(place):
        ours = []
        for cc in order:
            theirs, mine = golden_flows(place, golden_name("FbHdp30", cc)), our_flows(place, "FbHdp30", cc)["flows"]
            tails = [percentile([value for flow, value in zip(flows, values) if flow["bytes"] <= 1000], 0.99)
                     for flows, values in zip((theirs, mine), slowdowns(theirs, mine))]
            yield Figure(f"{cc}, up to 1 kB, p99", *tails, 0.25)
            ours.append(tails[1])
        yield Figure("pairs out of order", 0, sum(a >= b for a, b in zip(ours, ours[1:])), 0)
    return measure


def alike(flows):
    """Completions by what tells flows apart; those of flows that begin together for the same destination with as many bytes, in
    order: which of them is first is the toss of a coin, and a published run has tossed once."""
    kinds = collections.defaultdict(list)
    for flow in flows:
        kinds[flow["dst"], flow["bytes"]].append((flow["start_ns"], flow["fct_ns"]))
    return [fct for kind in sorted(kinds) for _, fct in sorted(kinds[kind])]


def by_source(flows):
    return [flow["fct_ns"] for flow in sorted(flows, key=lambda flow: (flow["src"], flow["dst"], flow["bytes"], flow["start_ns"]))]


def apart(golden, ours):
    """The mean of |FCT / golden - 1|."""
    return statistics.mean(abs(mine / theirs - 1) for theirs, mine in zip(golden, ours))


# Paths and telemetry as there.
AS_NS3 = ("network.switch.hash=ns3", "network.switch.telemetry=ns3")


def flow_by_flow(flows, cc, *settings, golden=None, remains=None):
    """Each flow beside its own published completion: 1 and the mean of how far they are apart, the median of the seeds and the
    range. remains: why that is not judged; a few seeds, to see."""
    def measure(place):
        theirs = golden_flows(place, golden or golden_name(flows, cc))
        seeds = min(place.seeds, 3) if remains else place.seeds
        runs = [our_flows(place, flows, cc, *AS_NS3, *settings, seed=seed + 1)["flows"] for seed in range(seeds)]
        figures = [("mean of abs(FCT/golden - 1)", alike, 0.03), ("the same, equal flows by source", by_source, None)]
        if remains:
            figures = [(f"mean of abs(FCT/golden - 1), not judged: {remains}", by_source, None)]
        for what, of, tolerance in figures:
            means = [apart(of(theirs), of(run)) for run in runs]
            yield Figure(what, 1, 1 + statistics.median(means), tolerance, "", (1 + min(means), 1 + max(means)))
    return measure


# Its switches keep 1.3 MB of 32 MiB aside, thrice rate times delay of each link. Here links have the headroom that they need, 2.5.
HPCC_BUFFER = "network.switch.buffer=34814kB"


def fixed_point(flows):
    """Once all has settled: what a run has beyond one that is half as long. Flows that are equal end together."""
    def measure(place):
        def run(total):
            return place.simulate(HERE / "dcqcn_star.yaml", f"workload.0.senders={flows}",
                                  f"workload.0.bytes={total // flows // 1000 * 1000}")
        half, whole = run(400_000_000), run(800_000_000)
        marked = (whole["marked_packets"] - half["marked_packets"]) / (whole["data_packets"] - half["data_packets"])
        yield Figure("marked, of the protocol", fixed_point_law.of_protocol(flows), marked, 0.2)
        yield Figure("marked, of the fluid model", fixed_point_law.FLUID[flows], marked, None)
        yield Figure("Jain of 1/FCT", 1, jain([1 / flow["fct_ps"] for flow in whole["flows"]]), 0.01)
    return measure


def hpcc_rows(cc, names):
    rows = {
        "single": (0.1, completions("single", cc)),
        "two1": (3, completions("two1", cc, by_chance=True)),
        "incast16": (3, completions("incast16", cc, by_chance=True)),
        "incast127": (40, completions("incast127", cc, *[HPCC_BUFFER] if cc == "hpcc" else [],
                                      pauses=2203 if cc == "dcqcn" else None, by_chance=True)),
        "perm320": (10, distribution("perm320", cc)),
        "perm320_4k": (5, distribution("perm320", cc, "transport.mtu=4096", golden=f"perm320_{cc}_4k")),
        "FbHdp30": (20, distribution("FbHdp30", cc, by_size=True)),
        "WebSearch30": (20, distribution("WebSearch30", cc)),
    }
    return [Row(f"{cc}/{name}", *rows[name]) for name in names] + flow_rows(cc, names)


# The seconds of 20 seeds, and of three where the row is not judged; why these are not.
FLOW_ROWS = {"single": (1, None), "two1": (3, None), "incast16": (3, None), "incast127": (80, None),
             "perm320": (15, "who meets whom on a link, hashed alike, is drawn again by each mark and by who is first of two at once"),
             "perm320_4k": (8, "the same as perm320"),
             "FbHdp30": (40, "short flows wait for what is before them: a queue that is drawn, not a rate that settles"),
             "WebSearch30": (40, "the same as FbHdp30")}


def flow_rows(cc, names):
    rows = []
    for name in names:
        seconds, remains = FLOW_ROWS[name]
        settings = [HPCC_BUFFER] if (cc, name) == ("hpcc", "incast127") else []
        flows = "perm320" if name == "perm320_4k" else name
        settings += ["transport.mtu=4096"] if name == "perm320_4k" else []
        golden = f"perm320_{cc}_4k" if name == "perm320_4k" else None
        rows.append(Row(f"{cc}/{name}, flow by flow", seconds,
                        flow_by_flow(flows, cc, *settings, golden=golden, remains=remains)))
    return rows


ROWS = (
    hpcc_rows("dcqcn", ("single", "two1", "incast16", "incast127", "perm320", "perm320_4k", "FbHdp30", "WebSearch30"))
    + hpcc_rows("dcqcn_paper", ("single", "two1", "incast16"))
    + hpcc_rows("dcqcn_vwin", ("single", "two1", "incast16", "FbHdp30"))
    + [Row(f"{cc}/{flows}", seconds, completions(flows, cc, by_chance=flows == "incast16")) for cc in ("dctcp", "timely")
       for flows, seconds in (("single", 0.1), ("two1", 0.2), ("incast16", 2))]
    + [row for cc in ("dctcp", "timely") for row in flow_rows(cc, ("single", "two1", "incast16"))]
    + [Row("timely/two1, a little apart", 1, by_phase("two1", "timely", (1, 5, 10, 42, 85, 200, 500)))]
    + hpcc_rows("hpcc", ("single", "two1", "incast16", "incast127", "perm320", "FbHdp30", "WebSearch30"))
    + [Row(f"dcqcn/fixed point of {flows}", 10, fixed_point(flows)) for flows in fixed_point_law.FLUID]
    + [Row("hpcc/short-flows", 30, short_flows("hpcc", "dcqcn_vwin", "dcqcn"))]
    + [Row(f"htsim/{senders} to one", 0.5, htsim.incast(senders)) for senders in (1, 15, 127)]
    + [Row("htsim/permutation, nobody paused", 40, htsim.permutation(None)),
       Row("htsim/permutation, pauses", 40, htsim.permutation("pfc")),
       Row("htsim/permutation, sprayed", 15, htsim.spraying)]
    + [Row("micro/a short flow behind a long one", 15, micro.short_behind_long),
       Row("micro/mice behind elephants", 20, micro.mice_behind_elephants),
       Row("micro/incast onto a long flow", 20, micro.incast_onto_a_long_flow),
       Row("micro/four that come and go", 60, micro.four_come_and_go)]
    + [Row("testbed/parking lot of pfc", 5, testbed.parking_lot_of_pfc),
       Row("testbed/parking lot of dcqcn", 20, testbed.parking_lot_of_dcqcn),
       Row("testbed/victim of pfc, 0 below T3", 15, testbed.victim_of_pfc(4, 10)),
       Row("testbed/victim of pfc, 1 below T3", 15, testbed.victim_of_pfc(5, None)),
       Row("testbed/victim of pfc, 2 below T3", 15, testbed.victim_of_pfc(6, 4.5), "a median over paths: hashes of the paper's switches are not known"),
       Row("testbed/victim of pfc, their case", 1, testbed.victim_in_the_case_of_the_paper),
       Row("testbed/victim of dcqcn", 40, testbed.victim_of_dcqcn),
       Row("chain/half for who goes by three links", 15, testbed.chain),
       Row("standstill/livelock", 1, standstill.livelock),
       Row("standstill/deadlock", 1, standstill.deadlock)]
)


# ---- The table ----------------------------------------------------------------------------------------------------------

def off_by(figure):
    if figure.published == 0:
        return 0.0 if figure.ours == 0 else float("inf")
    return figure.ours / figure.published - 1


def verdict(figure):
    if figure.tolerance is None:
        return ""
    if abs(off_by(figure)) <= figure.tolerance + 1e-12:
        return "ok"
    return "by chance" if figure.spread and figure.spread[0] <= figure.published <= figure.spread[1] else "MISS"


def number(value):
    return f"{value:.3e}" if 0 < value < 0.1 else f"{value:.4g}" if value < 1 else f"{value:.3f}" if value < 1000 else f"{value:,.1f}"


def show(row, figures):
    for figure in figures:
        off = off_by(figure)
        allowed = [f"{figure.tolerance:.0%}"] if figure.tolerance is not None else []
        allowed += [f"{number(figure.spread[0])} to {number(figure.spread[1])}"] if figure.spread else []
        print(f"| {row.name} | {figure.what} | {number(figure.published)} {figure.unit} | {number(figure.ours)} {figure.unit} | "
              f"{off:+.2%} | {', '.join(allowed)} | {verdict(figure)} |", flush=True)


def measure_rows(rows, place):
    """Measures each row and prints the table: what was measured, as (row, figures), and the names of rows that are not as
    expected."""
    measured, missed, left_out = [], [], 0
    print("| run | figure | published | ours | deviation | allowed | verdict |\n|---|---|---|---|---|---|---|")
    for row in rows:
        try:
            figures = list(row.measure(place))
        except Absent as absent:
            print(f"| {row.name} | {absent} | | | | | |")
            left_out += 1
            continue
        except (Failure, OSError, subprocess.TimeoutExpired) as failure:
            print(f"| {row.name} | {failure} | | | | | MISS |")
            missed.append(row.name)
            continue
        show(row, figures)
        measured.append((row, figures))
        misses = any(verdict(figure) == "MISS" for figure in figures)
        if misses != bool(row.known):
            missed.append(row.name + (" (was known to miss)" if row.known else ""))
    print(f"{len(rows) - len(missed) - left_out} as expected, {left_out} left out, {len(missed)} not"
          + (": " + ", ".join(missed) if missed else ""))
    return measured, missed


def find_data(given):
    if given:
        return pathlib.Path(given)
    for above in ROOT.parents:
        data = above / "shared/reference/fabric-data/hpcc-ns3"
        if data.is_dir():
            return data
    return HERE / "hpcc-ns3"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--data", help="flows/ and fct/ of the published runs")
    parser.add_argument("--only", action="append", metavar="ROW", help="names, or patterns as dcqcn/*")
    parser.add_argument("--not-above", type=float, metavar="SECONDS", help="leave out what takes longer")
    parser.add_argument("--seeds", type=int, default=20, help="runs of what goes by chance")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    rows = [row for row in ROWS if (not options.only or any(fnmatch.fnmatch(row.name, only) for only in options.only)) and
            (options.not_above is None or row.seconds <= options.not_above)]
    if options.list:
        for row in rows:
            print(f"{row.name:24} about {row.seconds} s{f'  known: {row.known}' if row.known else ''}")
        return 0
    place = Place(options.build.resolve(), find_data(options.data), options.seeds)
    _, missed = measure_rows(rows, place)
    return 1 if missed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
