#!/usr/bin/env python3
"""Chaos: connections under kills, stops, floods, loss and hostile users, and what must hold once it is over.

Without options: every scenario that is not long, and random rounds for MINUTES. The schedule of a round follows from
the seed and the round's number, and is printed. Needs root, for network namespaces and for several users."""

import argparse
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/conformance"))

import places
import scenarios
from process import Failure
from report import Report

SHORT_MINUTES = 0.2  # at least one round of each sort
SHORT_ROUND_SECONDS = 6.0
ROUND_SECONDS = 25.0
PROGRAMS = {"tests/chaos": ("talk", "flood", "hostile", "crowd"), "tests/conformance": ("peer",)}


class Context:
    """What a scenario gets. case() makes a check of its own out of a function that may raise Failure."""

    def __init__(self, options, launcher, directory, report):
        self.launcher = launcher
        self.directory = directory
        self.temporary = directory / "tmp"  # TMPDIR of actors, which must stay empty
        self.report = report
        self.seed = options.seed
        self.minutes = options.minutes
        self.round_seconds = SHORT_ROUND_SECONDS if options.short else ROUND_SECONDS
        self.only_round = options.round
        self.processes = options.processes

    def program(self, name):
        return self.directory / name

    def case(self, name, body):
        began = time.monotonic()
        result, why = "passed", ""
        try:
            body()
        except places.Unavailable as reason:
            result, why = "skipped", str(reason)
        except Failure as failure:
            result, why = "failed", str(failure)
        except Exception:  # an error of the harness must not hide the other results
            result, why = "failed", traceback.format_exc()
        self.report.add(name, result, why, time.monotonic() - began)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=str(ROOT / "build"), help="build directory with the launcher 'verbena'")
    parser.add_argument("--minutes", type=float, default=10, help="of random rounds (%(default)s)")
    parser.add_argument("--seed", type=int, help="of the schedules; printed, and replayed when given")
    parser.add_argument("--round", type=int, help="of the random rounds only that one")
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="only that scenario (several: each)")
    parser.add_argument("--processes", type=int, default=64, help="of many-neighbours (%(default)s)")
    parser.add_argument("--short", action="store_true", help="the short form of `make check`: a minute and a half")
    parser.add_argument("--list", action="store_true", help="print the scenarios and stop")
    parser.add_argument("--json", metavar="FILE", help="also write results and figures to FILE")
    options = parser.parse_args()
    known = {entry.name for entry in scenarios.SCENARIOS}
    if set(options.only) - known:
        parser.error(f"--only: there are {', '.join(sorted(known))}")
    if options.short:
        options.minutes = SHORT_MINUTES
    if options.round is not None and not options.only:
        options.only = ["churn"]
    if options.seed is None:
        options.seed = 1 if options.short else random.SystemRandom().randrange(1 << 31)
    return options


def chosen(options):
    if options.only:
        return [entry for entry in scenarios.SCENARIOS if entry.name in options.only]
    return [entry for entry in scenarios.SCENARIOS if not entry.is_long and (entry.is_short or not options.short)]


def prepare(options, directory):
    """Everything that actors of other users run, where they can reach it."""
    os.chmod(directory, 0o755)
    for folder, names in PROGRAMS.items():
        for name in names:
            shutil.copy(pathlib.Path(options.build) / folder / name, directory)
    shutil.copy(HERE / "streams.py", directory)
    temporary = directory / "tmp"
    temporary.mkdir()
    os.chmod(temporary, 0o1777)
    return places.launcher_for_everyone(options.build, directory)


def main():
    options = parse_arguments()
    if options.list:
        for entry in scenarios.SCENARIOS:
            print(f"{entry.name:28} {entry.about}" + (" (only when named)" if entry.is_long else ""))
        return 0
    if not (pathlib.Path(options.build) / "verbena").exists():
        sys.exit(f"{options.build}/verbena is not there: type make first")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was made is removed
    report = Report(options.seed, options.json)
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="verbena-chaos-") as scratch:
        for entry in chosen(options):
            if os.geteuid() != 0:
                report.add(entry.name, "skipped", "needs root")
        if os.geteuid() == 0:
            directory = pathlib.Path(scratch)
            context = Context(options, prepare(options, directory), directory, report)
            for entry in chosen(options):
                context.case(entry.name, lambda entry=entry: entry.run(context))
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
