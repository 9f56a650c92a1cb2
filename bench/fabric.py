#!/usr/bin/env python3
"""fabric: how fast `verbena sim` is. CPU time, one core unless said otherwise; each figure is the median of the rounds, and
every row runs once in each of them. Rows without engines are no RoCE: the floor of queue, links and switches. What misses what is wanted of it is named at the end, and makes the exit status 1.

--htsim gives a command line of htsim's that runs a permutation of 2 MB over 1,024 hosts; it is run and timed beside, in
each round, and compared by payload a CPU-second, which no acknowledgement inflates:

--where takes a row apart instead: which part of the simulator a hop's nanoseconds are spent in.

    make bench-fabric ARGS="--htsim './htsim_eqds -nodes 1024 -tm perm_1024n_1024c_0u_2000000b.cm -topo fat_tree_1024.topo'"
"""

import argparse
import collections
import json
import os
import pathlib
import platform
import resource
import shlex
import subprocess
import sys

sys.dont_write_bytecode = True

import where
from cache_misses import CacheMisses
from figures import Figures

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAYLOAD = 1024 * 2e6  # of htsim's permutation
PATIENCE = 1800

# A scenario, and what is wanted of it in millions of packet-hops a CPU-second and in MB.
Row = collections.namedtuple("Row", "name example hops_at_least memory_at_most settings", defaults=((),))
WITH_ENGINES = (
    Row("128", "permutation-128", 5.0, None),
    Row("1024", "permutation-1024", 2.5, 40),
    Row("8192", "permutation-8192", 1.0, 200),
)
NO_ENGINES = "-no-engines"
# What people run: switches that pause and mark, and a control that slows down.
PAUSING = ("network.switch.profile=hpcc",)
WITH_CONTROL = (
    Row("1024-dcqcn", "permutation-1024", None, None, PAUSING + ("transport.cc=dcqcn",)),
    Row("1024-hpcc", "permutation-1024", None, None, PAUSING + ("transport.cc=hpcc",)),
)
# The same without engines is told of beside each; nothing is wanted of it.
ROWS = WITH_CONTROL + tuple(row for engines in WITH_ENGINES for row in (
    engines, Row(engines.name + NO_ENGINES, engines.example, None, None, ("transport.endpoint=ideal",))))
TWO_THREADS = "1024-two-threads"


class Failure(Exception):
    pass


def command_of(build, example, settings=()):
    command = [f"{build}/verbena", "sim", str(ROOT / f"examples/{example}.yaml"), "--json", "--no-progress"]
    return command + [word for setting in settings for word in ("--set", setting)]


def simulate(build, example, settings=()):
    command = command_of(build, example, settings)
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
    if done.returncode:
        raise Failure(f"{example}: exit status {done.returncode}: {done.stderr.strip() or done.stdout[:300]}")
    return json.loads(done.stdout)


def title_of(row):
    return row.name.removesuffix(NO_ENGINES) + (", no engines (not RoCE)" if row.name.endswith(NO_ENGINES) else "")


def add_row(figures, row, result, misses=None):
    """misses: of the cache, in that run; None: nobody counts them."""
    title = title_of(row)
    figures.add(f"{row.name}/hops", result["packet_hops_per_cpu_s"] / 1e6, f"{title}: packet-hops", "M/s",
                at_least=row.hops_at_least)
    figures.add(f"{row.name}/payload", result["payload_gb_per_cpu_s"], f"{title}: payload", "GB/s")
    figures.add(f"{row.name}/ns", result["cpu_s"] * 1e9 / result["packet_hops"], f"{title}: a hop", "ns")
    figures.add(f"{row.name}/hops-a-packet", result["packet_hops"] / max(result["data_packets"], 1),
                f"{title}: hops a data packet, those of its acks included", "")
    figures.add(f"{row.name}/acks-a-packet", result["acks"] / max(result["data_packets"], 1),
                f"{title}: acks a data packet, asked for by every {_ordinal(result['ack_every'])}", "")
    figures.add(f"{row.name}/memory", result["max_rss_bytes"] / 1e6, f"{title}: memory", "MB",
                at_most=row.memory_at_most)
    if misses is not None:
        figures.add(f"{row.name}/cache-misses", misses / result["packet_hops"], f"{title}: cache misses a hop", "")


def _ordinal(count):
    return "one" if count == 1 else f"{count}th"


def measure_row(figures, build, row, counter):
    before = None if counter.reason else counter.total()
    result = simulate(build, row.example, row.settings)
    add_row(figures, row, result, None if before is None else counter.total() - before)
    return result


def add_two_threads(figures, build):
    """By critical path: what the busiest thread did, window by window, as the machine may have no second core to give."""
    single = simulate(build, "permutation-1024")
    double = simulate(build, "permutation-1024", ("run.threads=2",))
    if double["result_hash"] != single["result_hash"]:
        raise Failure("two threads do not have the result of one")
    figures.add(f"{TWO_THREADS}/ratio", single["cpu_s"] / double["critical_cpu_s"], "1024: one thread / two, by critical path",
                "", at_least=1.7,
                bound=f"two threads share the work evenly, and take {double['cpu_s'] / single['cpu_s']:.2f} times the CPU of one")


def add_htsim(figures, command, ours):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(shlex.split(command), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise Failure(f"htsim: exit status {done.returncode}: {done.stderr[-300:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    figures.compare("1024/beside", "1024: payload", "GB/s", ours["payload_gb_per_cpu_s"], PAYLOAD / 1e9 / cpu, "htsim",
                    at_least=12)


def run_round(figures, options, rows, counter):
    for row in rows:
        print(f"  {row.name}", file=sys.stderr, flush=True)
        result = measure_row(figures, options.build, row, counter)
        if row.name == "1024" and options.htsim:
            add_htsim(figures, options.htsim, result)
    if wanted(TWO_THREADS, options.only):
        print(f"  {TWO_THREADS}", file=sys.stderr, flush=True)
        add_two_threads(figures, options.build)


def take_apart(options):
    """What --where prints."""
    row = next(row for row in ROWS if row.name == options.where)
    print(f"{row.name}: where the time goes; opening, and what is told of a run, are a part of samples alone")
    print("\n".join(where.by_differences(lambda example, settings: simulate(options.build, example, settings), row.example,
                                         options.rounds)))
    print("\n".join(where.by_tool(lambda example, settings: command_of(options.build, example, settings), row.example,
                                  options.build)))
    return 0


def wanted(name, only):
    return not only or name in only


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", metavar="ROW", action="append",
                        choices=[row.name for row in ROWS] + [TWO_THREADS], help="again for more")
    parser.add_argument("--where", metavar="ROW", choices=[row.name for row in WITH_ENGINES],
                        help="where a hop's nanoseconds go, instead")
    parser.add_argument("--htsim", metavar="COMMAND", help="a command line of htsim's, to be run beside")
    parser.add_argument("--json", metavar="FILE", help="also write all values to FILE")
    options = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}, "
          f"load {os.getloadavg()[0]:.1f}; CPU time, median of {options.rounds}")
    if options.where:
        return take_apart(options)
    counter = CacheMisses()
    if counter.reason:
        print(f"cache misses are not counted here: {counter.reason}")
    figures = Figures()
    failures = []
    rows = [row for row in ROWS if wanted(row.name, options.only)]
    try:
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
            run_round(figures, options, rows, counter)
    except (Failure, subprocess.TimeoutExpired) as failure:
        failures.append(str(failure))
    return figures.conclude(failures, options.json)


if __name__ == "__main__":
    sys.exit(main())
