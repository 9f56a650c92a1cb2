#!/usr/bin/env python3
"""bench: what the numbers in docs/figures.md come from. Ratios are of neighbouring runs in one round; each figure is the
median of the rounds, with quartiles, the smallest and largest beside it. What misses what is wanted of it is named at the end,
with what bounds it, and makes the exit status 1."""

import argparse
import collections
import dataclasses
import fnmatch
import functools
import json
import os
import pathlib
import platform
import signal
import sys
import tempfile

import ends as between
import loss
import measure
import programs_wire
import same_host
import wire
from figures import Figures
from measure import Failure, places

ROOT = pathlib.Path(__file__).resolve().parent.parent
Row = collections.namedtuple("Row", "part name run is_once")


def rows_of(part, of_each_round, once=()):
    return ([Row(part, name, run, False) for name, run in of_each_round.items()]
            + [Row(part, name, once[name], True) for name in once])


ROWS = rows_of("same-host", same_host.ROUNDS) + rows_of("wire", wire.ROUNDS, wire.ONCE)
PROGRAM_ROWS = rows_of("programs-wire", programs_wire.ROUNDS)
LOSS_ROWS = rows_of("loss", loss.ROUNDS)
EVERY_ROW = ROWS + PROGRAM_ROWS + LOSS_ROWS
PAIRS = 9  # rounds where all that runs is of loss


@dataclasses.dataclass
class Bench:
    """What a row needs."""
    build: str
    seconds: int
    cores: tuple
    world: places.World
    figures: Figures
    round: int = 0

    @functools.cached_property
    def same_host(self):
        return measure.loopback(self.world)

    @property
    def wire(self):
        return dataclasses.replace(self.same_host, settings=between.WIRE)

    @functools.cached_property
    def veth(self):
        return measure.veth(self.world)


def chosen(patterns, with_programs):
    """The rows that a person asks for, by part, name or both."""
    if not patterns:
        return PROGRAM_ROWS if with_programs else ROWS
    rows, unmatched = [], set(patterns)
    for row in EVERY_ROW:
        matching = {pattern for pattern in patterns
                    if any(fnmatch.fnmatch(name, pattern) for name in (row.part, row.name, f"{row.part}/{row.name}"))}
        unmatched -= matching
        rows += [row] if matching else []
    if unmatched:
        raise Failure(f"no row is called {', '.join(sorted(unmatched))}; --list shows all")
    return rows


def run_row(bench, row, said, failures):
    """One row of one round. What fails is told, and the others go on."""
    print(f"{said}: {row.part}/{row.name}", file=sys.stderr, flush=True)
    bench.figures.part = row.part
    try:
        row.run(bench)
    except Failure as failure:
        print(failure, file=sys.stderr)
        failures.append(f"{row.part}/{row.name} failed: {str(failure).splitlines()[0]}")


def run_rows(bench, rows, rounds, failures):
    """All rows in every round, so that each meets what the machine does besides."""
    for number in range(rounds):
        bench.round = number
        for row in (row for row in rows if not row.is_once):
            run_row(bench, row, f"round {number + 1} of {rounds}", failures)
    for row in (row for row in rows if row.is_once):
        run_row(bench, row, "once", failures)


def report(figures, failures):
    """Print it; the exit status."""
    if figures:
        print("\n".join(figures.table()))
    misses = figures.misses + failures
    if misses:
        print(f"\nMissed, {len(misses)}:")
        for miss in misses:
            print(f"  {miss}")
    return 1 if misses else 0


def measure_all(options, rows):
    cores = between.two_cores()
    load = os.getloadavg()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores ({cores[0]} and {cores[1]} for pairs), "
          f"Linux {platform.release()}, load {load[0]:.1f}; median of {options.rounds}", flush=True)
    figures, failures, world = Figures(), [], None
    try:
        with tempfile.TemporaryDirectory(prefix="verbena-") as scratch:
            os.chmod(scratch, 0o755)
            world = places.World(places.launcher_for_everyone(options.build, scratch))
            bench = Bench(options.build, options.seconds, cores, world, figures)
            run_rows(bench, rows, options.rounds, failures)
    except (KeyboardInterrupt, SystemExit):
        failures.append("the run was ended before its time")
    finally:
        if world:
            world.close()
    print(f"load at the end {os.getloadavg()[0]:.1f}, this run's own included\n")
    status = report(figures, failures)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures.as_json(), indent=1) + "\n")
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--rounds", "--pairs", type=int, help="5; of loss alone, where a round is a pair, 9")
    parser.add_argument("--seconds", type=int, default=2, help="of one measurement")
    parser.add_argument("--only", metavar="ROW", action="append",
                        help="a part, a row, or a pattern of them: wire, send-lat, 'same-host/*-lat'; again for more")
    parser.add_argument("--programs", action="store_true", help="programs that people run instead, over the wire")
    parser.add_argument("--list", action="store_true", help="the rows that there are")
    parser.add_argument("--json", metavar="FILE", help="also write all values to FILE")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was made is removed
    if options.list:
        print("\n".join(f"{row.part}/{row.name}" for row in EVERY_ROW))
        return 0
    try:
        rows = chosen(options.only, options.programs)
        options.rounds = options.rounds or (PAIRS if {row.part for row in rows} == {"loss"} else 5)
        return measure_all(options, rows)
    except Failure as failure:
        print(failure)
        return 1


if __name__ == "__main__":
    sys.exit(main())
