#!/usr/bin/env python3
"""flows_vs_packets: the same runs by flows (run.mode: flows) and packet by packet, beside each other.

Where messages are alone on their links, or share one that max-min fairness is plain for, the job's time is held to half a per cent.
Where they contend by chance it is held to five per cent, and the errors of single messages are told: packets wait in queues in the
order in which they come, so a message may be far from its fair share while all together take as long. With a congestion control
that is not max-min fair all errors are told, and none is judged. The exit status is 1 when a row misses.

    make validate-fabric                                  # with all else
    python3 tests/validation/flows_vs_packets.py --build build [--quick] [--table]"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

ALONE, CONTENDED = 0.005, 0.05  # allowed
PATIENCE = 1800
STAR = "network: {topology: switch, endpoints: 16}\n"
RAIL = "network: {topology: rail, machines: 8, nics-a-machine: 8}\nhosts: {gpu: H100}\n"
RAIL_TREE = RAIL.replace("8}", "8, leaves: 2, spines: 4}")
TREE = "network: {topology: fat-tree, endpoints: 128, switch: {profile: ideal}}\n"
LINE = "network: {topology: dumbbell, endpoints: 8, switch: {profile: ideal}}\n"


class Failure(Exception):
    pass


def simulate(verbena, scenario, mode, flows=None, **transport):
    """The result; with messages, those of a job by source, destination and start."""
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch)
        keys = ", ".join(f"{key}: {value}" for key, value in transport.items())
        (path / "scenario.yaml").write_text(scenario + (f"transport: {{{keys}}}\n" if keys else ""))
        command = [verbena, "sim", path / "scenario.yaml", "--set", f"run.mode={mode}", "--json", "--no-alone"]
        if flows:
            lines = [f"{src} {dst} 0 100 {size} {start:.9f}" for src, dst, size, start in flows]
            (path / "flows.txt").write_text("\n".join([str(len(flows)), *lines, ""]))
            command += ["--flows", path / "flows.txt"]
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
        if done.returncode or not done.stdout:
            raise Failure(f"{scenario}{mode}: status {done.returncode}: {done.stderr.strip()}")
        result = json.loads(done.stdout)
    if result["mode"] != mode or result["end"] != "done":
        raise Failure(f"{scenario}: run by {result['mode']}, ended {result['end']}")
    return result


def at(sorted_values, share):
    return sorted_values[min(int(share * len(sorted_values)), len(sorted_values) - 1)]


class Row:
    """allowed: of the job's time; None: it is told, and not judged."""

    def __init__(self, name, scenario, allowed, flows=None, is_quick=False, **transport):
        self.name, self.scenario, self.allowed, self.flows = name, scenario, allowed, flows
        self.is_quick, self.transport = is_quick, transport

    def measure(self, verbena):
        packets, fluid = (simulate(verbena, self.scenario, mode, self.flows, **self.transport) for mode in ("packets", "flows"))
        self.packets_us, self.flows_us = packets["jct_ps"] / 1e6, fluid["jct_ps"] / 1e6
        self.error = self.flows_us / self.packets_us - 1
        self.errors = sorted(abs(b["fct_ps"] / a["fct_ps"] - 1) for a, b in zip(packets["flows"], fluid["flows"]))
        self.cpu = packets["cpu_s"], fluid["cpu_s"]
        self.speed = packets["cpu_s"] / max(fluid["cpu_s"], 1e-4)

    def is_missed(self):
        return self.allowed is not None and abs(self.error) > self.allowed

    def verdict(self):
        return "told" if self.allowed is None else "MISSED" if self.is_missed() else "ok"

    def of_messages(self):
        if not self.errors:
            return ("", "", "")
        return tuple(f"{100 * value:.1f}%" for value in (at(self.errors, 0.5), at(self.errors, 0.95), self.errors[-1]))


# ---- Alone, and max-min -----------------------------------------------------------------------------------------------

def collective(network, kind, algorithm, size):
    return f"{network}workload: {{kind: {kind}, algorithm: {algorithm}, bytes: {size}}}\n"


def alone_rows():
    star = [("allreduce", "ring"), ("allreduce", "halving-doubling"), ("allreduce", "direct"), ("all-gather", "ring"),
            ("reduce-scatter", "direct"), ("broadcast", "chain")]
    rail = [("allreduce", "ring"), ("allreduce", "halving-doubling"), ("allreduce", "hierarchical"), ("all-gather", "ring"),
            ("broadcast", "chain")]
    for kind, algorithm in star:
        for size in ("1MiB", "16MiB", "64MiB"):
            yield Row(f"star: {kind} {algorithm} {size}", collective(STAR, kind, algorithm, size), ALONE, is_quick=size == "1MiB")
    for kind, algorithm in rail:
        for size in ("16MiB", "64MiB"):
            yield Row(f"rail: {kind} {algorithm} {size}", collective(RAIL, kind, algorithm, size), ALONE,
                      is_quick=(algorithm, size) == ("hierarchical", "16MiB"))
    for kind, algorithm in rail:
        yield Row(f"rails of leaves and spines: {kind} {algorithm} 16MiB", collective(RAIL_TREE, kind, algorithm, "16MiB"), CONTENDED)
    yield Row("star: 15 into one, 4 MB each", STAR + "workload: {kind: incast, bytes: 4MB}\n", ALONE, is_quick=True)
    yield Row("dumbbell: four over one link, 4 MB each", LINE + "workload: {kind: permutation, bytes: 4MB}\n", ALONE,
              [(i, 4 + i, 4000000, 0) for i in range(4)], is_quick=True)
    yield Row("dumbbell: four over one link, some ms apart", LINE, ALONE, [(i, 4 + i, 8000000, i * 1e-4) for i in range(4)],
              is_quick=True)


# ---- By chance --------------------------------------------------------------------------------------------------------

def random_list(seed, count=200, endpoints=128):
    chance = random.Random(seed)
    flows = []
    for _ in range(count):
        src, dst = chance.sample(range(endpoints), 2)
        flows.append((src, dst, int(200000 * 40 ** chance.random()), chance.random() * 5e-4))
    return sorted(flows, key=lambda flow: flow[3])


def contended(seed):
    """(name, workload, flows)"""
    kinds = [("random list", "", random_list(seed)),
             ("permutation, 4 MB", f"workload: {{kind: permutation, bytes: 4MB}}\nrun: {{seed: {seed}}}\n", None),
             ("incasts of 12, 1 MB", "workload: [" + ", ".join(
                 f"{{kind: incast, senders: 12, target: {target}, bytes: 1MB}}" for target in
                 random.Random(seed).sample(range(128), 4)) + f"]\nrun: {{seed: {seed}}}\n", None),
             ("all-to-all of 32, 500 kB", f"workload: {{kind: all-to-all, endpoints: 32, bytes: 500kB}}\nrun: {{seed: {seed}}}\n",
              None)]
    return kinds[seed % len(kinds)]


def contended_rows():
    for seed in range(20):
        name, workload, flows = contended(seed)
        yield Row(f"fat-tree: {name}, seed {seed}", TREE + (workload or "run: {seed: %d}\n" % seed), CONTENDED, flows,
                  is_quick=seed in (0, 1))


def told_rows():
    for cc in ("dcqcn", "timely", "hpcc"):
        for seed in (0, 1):
            name, workload, flows = contended(seed)
            yield Row(f"fat-tree, cc {cc}: {name}, seed {seed}",
                      TREE.replace("ideal", "hpcc") + (workload or "run: {seed: %d}\n" % seed), None, flows, cc=cc)


# ---- All --------------------------------------------------------------------------------------------------------------

def show(row, is_table):
    median, p95, worst = row.of_messages()
    if is_table:
        print(f"| {row.name} | {row.packets_us:,.1f} | {row.flows_us:,.1f} | {100 * row.error:+.2f}% | {median} | {p95} | {worst} | "
              f"{row.speed:,.0f} | {row.verdict()} |", flush=True)
    else:
        print(f"{row.name:56} {row.packets_us:10.1f} {row.flows_us:10.1f} {100 * row.error:+7.2f}% {median:>7} {p95:>7} {worst:>7} "
              f"{row.speed:8.0f}  {row.verdict()}", flush=True)


def heading(is_table):
    if is_table:
        return ("| run | packets, us | flows, us | JCT | messages, median | p95 | worst | times as fast | verdict |\n"
                "|---|---|---|---|---|---|---|---|---|")
    return f"{'':56} {'packets us':>10} {'flows us':>10} {'JCT':>8} {'median':>7} {'p95':>7} {'worst':>7} {'speed':>8}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--quick", action="store_true", help="a few rows, in a moment")
    parser.add_argument("--table", action="store_true", help="as Markdown, for docs/fabric-validation.md")
    options = parser.parse_args()
    rows = [row for row in (*alone_rows(), *contended_rows(), *told_rows()) if row.is_quick or not options.quick]
    print(heading(options.table))
    missed = 0
    for row in rows:
        row.measure(options.build.resolve() / "src/cli/verbena")
        show(row, options.table)
        missed += row.is_missed()
    print(f"\n{len(rows)} rows, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(str(failure))
