#!/usr/bin/env python3
"""Conformance: unmodified Debian programs on Verbena, run as a person would, their output read and judged.

Without options: the pairwise selection (matrix.py) and the live tests (live_*.py), as CI runs them. Every case has a
deadline; a hang shows what both ends printed and where they are. At the end nothing may be left behind."""

import argparse
import collections
import json
import os
import pathlib
import pwd
import queue
import shutil
import sys
import tempfile
import threading
import time
import traceback

sys.dont_write_bytecode = True

import live
import matrix
import places
import programs
from process import Failure

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CASE_SECONDS = 30

Result = collections.namedtuple("Result", "name result why seconds")


def passed_in(file):
    """Names of what passed in an earlier run, by its --json file, so that a run of hours can be done in parts."""
    try:
        cases = json.loads(pathlib.Path(file).read_text())["cases"]
        return {case["name"] for case in cases if case["result"] == "passed"}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise argparse.ArgumentTypeError(f"{file} is not such a file: {error}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=str(ROOT / "build"), help="build directory with the launcher 'verbena'")
    parser.add_argument("--full", action="store_true", help="the whole product instead of the pairwise selection")
    parser.add_argument("--no-live", action="store_true", help="leave out the live tests (kill -9, incast, faults...)")
    parser.add_argument("--only-live", action="store_true", help="nothing but the live tests")
    parser.add_argument("--all-live", action="store_true", help="also the live tests that make check leaves out (worse losses...)")
    parser.add_argument("--filter", action="append", default=[], metavar="TEXT",
                        help="only cases whose name contains TEXT (several: all of them)")
    parser.add_argument("--shard", default="1/1", metavar="I/N", help="every N-th case, beginning with the I-th")
    parser.add_argument("--seed", type=int, default=1, help="of the pairwise selection")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time, each in namespaces of its own")
    parser.add_argument("--seconds", type=float, default=CASE_SECONDS, help="deadline of a case (%(default)s)")
    parser.add_argument("--stop-after", type=int, default=0, metavar="N", help="give up after N failures")
    parser.add_argument("--second-try", action="store_true", help="run what failed once more; say what was unsteady")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--dry-run", action="store_true", help="print the commands of both ends and stop")
    parser.add_argument("--verbose", action="store_true", help="a line a case, not only for failures")
    parser.add_argument("--json", metavar="FILE", help="also write the results to FILE")
    parser.add_argument("--after", action="append", default=[], metavar="FILE", type=passed_in,
                        help="leave out the cases that passed in an earlier run's --json FILE (several: in any)")
    return parser.parse_args()


def chosen_cases(options):
    cases = [] if options.only_live else list(matrix.product() if options.full else matrix.selection(options.seed))
    index, count = (int(part) for part in options.shard.split("/"))
    passed = set().union(*options.after)
    cases = [case for case in cases if all(text in matrix.name(case) for text in options.filter)][index - 1::count]
    cases = [case for case in cases if matrix.name(case) not in passed]
    # Users of one path together: another user's broker is refused until it has left.
    return sorted(cases, key=lambda case: (case.path, case.user))


def chosen_live(options):
    if options.full or options.no_live:
        return []
    return [test for test in live.TESTS if (test.is_in_check or options.all_live)
            and all(text in "live " + test.name for text in options.filter)]


class Report:
    """Results as they come, printed so that one sees that it goes on and what went wrong."""

    def __init__(self, total, options):
        self.total = total
        self.verbose = options.verbose
        self.stop_after = options.stop_after
        self.second_try = options.second_try
        self.file = options.json
        self.unsteady = []  # names of what failed at first
        self.results = []
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._said = 0

    def add(self, name, result, why="", seconds=0.0):
        with self._lock:
            self.results.append(Result(name, result, why, seconds))
            if result == "failed":
                print(f"\nFAILED  {name}\n{_indent(why)}\n", flush=True)
            elif self.verbose:
                print(f"{result:7} {name} ({seconds:.1f} s)" + (f": {why}" if why else ""), flush=True)
            self._progress()

    def count(self, result):
        return sum(1 for entry in self.results if entry.result == result)

    def is_over(self):
        return bool(self.stop_after) and self.count("failed") >= self.stop_after

    def _progress(self):
        now = time.monotonic()
        done = len(self.results)
        if not self.verbose and (now - self._said > 15 or done == self.total):
            self._said = now
            print(f"{done} of {self.total} after {now - self._began:.0f} s: {self.count('passed')} passed, "
                  f"{self.count('failed')} failed, {self.count('skipped')} skipped", flush=True)
            self.write()

    def write(self):
        """The results so far, so that what was done is not lost when the run is cut off."""
        if self.file:
            rows = [entry._asdict() for entry in self.results]
            pathlib.Path(self.file).write_text(json.dumps({"cases": rows}, indent=1) + "\n")


def _indent(text):
    return "\n".join("    " + line for line in text.splitlines())


def reason_to_skip(case, world):
    if not shutil.which(case.kind.split()[0]):
        return f"{case.kind.split()[0]} is not installed"
    if case.user == "root" and os.geteuid() != 0:
        return "needs root"
    if world.open(case.path) is None:
        return f"{case.path}: {world.unavailable[case.path]}"
    return None


def judge(name, report, body):
    """Run body; its Failure, or anything that it did not foresee, is the test's failure. With --second-try a failure is
    shown, the test runs once more, and when that passes it is listed as unsteady: a busy machine fails what is well."""
    began = time.monotonic()
    try:
        try:
            body()
        except Failure as failure:
            if not report.second_try:
                raise
            report.unsteady.append(name)
            print(f"\nAGAIN   {name}\n{_indent(str(failure))}\n", flush=True)
            body()
    except places.Unavailable as reason:
        report.add(name, "skipped", str(reason), time.monotonic() - began)
    except Failure as failure:
        report.add(name, "failed", str(failure), time.monotonic() - began)
    except Exception:  # an error of the runner must not hide the other results
        report.add(name, "failed", traceback.format_exc(), time.monotonic() - began)
    else:
        report.add(name, "passed", "", time.monotonic() - began)


def run_cases(cases, launcher, report, options):
    """The cases of one worker, in namespaces of its own."""
    world = places.World(launcher)
    last = None
    try:
        while not report.is_over():
            try:
                case = cases.get_nowait()
            except queue.Empty:
                break
            reason = reason_to_skip(case, world)
            if reason:
                report.add(matrix.name(case), "skipped", reason)
                continue
            path = world.open(case.path)
            if last and last != (case.path, case.user):
                check_leftovers(world, report, *last)
            last = (case.path, case.user)
            seconds = options.seconds * (4 if case.option == "-a" else 1)
            judge(matrix.name(case), report, lambda: programs.run_case(case, path, seconds))
        if last:
            check_leftovers(world, report, *last)
    finally:
        world.close()


def check_leftovers(world, report, path_name, user):
    path = world.paths[path_name]

    def body():
        ends = [path.server] if path.server is path.client else [path.server, path.client]
        found = places.leftovers(ends, world.holder_pids())
        if found:
            raise Failure("left behind:\n" + "\n".join(found))

    report.total += 1
    judge(f"nothing is left behind: {path_name} {user}", report, body)


def run_live(tests, launcher, directory, report):
    for test in tests:
        if report.is_over():
            return
        world = places.World(launcher, test.settings)
        try:
            judge("live " + test.name, report, lambda: test.run(live.Context(world, directory)))
        finally:
            world.close()


def dry_run(cases):
    lo = places.Place([], "lo", "verbena", "vb_lo", "127.0.0.1", "::1")
    lo.gid_index = lambda version, user: 0 if version == 4 else 1
    for case in cases:
        if case.kind in matrix.PERFTEST:
            print(" ".join(lo.command(programs.perftest_arguments(case, lo, programs.next_port()), case.user)))
        else:
            print(matrix.name(case))


def main():
    options = parse_arguments()
    cases, tests = chosen_cases(options), chosen_live(options)
    if options.list:
        print("\n".join([matrix.name(case) for case in cases] + ["live " + test.name for test in tests]))
        return 0
    if options.dry_run:
        dry_run(cases)
        return 0
    if not (pathlib.Path(options.build) / "verbena").exists():
        sys.exit(f"{options.build}/verbena is not there: type make first")

    report = Report(len(cases) + len(tests), options)
    print(f"{len(cases)} cases and {len(tests)} live tests as {pwd.getpwuid(os.geteuid()).pw_name}", flush=True)
    with tempfile.TemporaryDirectory(prefix="verbena-") as scratch:
        os.chmod(scratch, 0o755)  # nobody must reach what lies in it
        launcher = places.launcher_for_everyone(options.build, scratch)
        waiting = queue.Queue()
        for case in cases:
            waiting.put(case)
        workers = [threading.Thread(target=run_cases, args=(waiting, launcher, report, options))
                   for _ in range(options.jobs)] if cases else []
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if tests:
            for program in ("conformance/peer", "conformance/dial", "conformance/queues", "conformance/mpi_check",
                            "chaos/crowd", "chaos/hostile"):
                built = pathlib.Path(options.build) / "tests" / program
                if built.exists():
                    shutil.copy(built, scratch)
            run_live(tests, launcher, scratch, report)
    summarise(report, options)
    return 1 if report.count("failed") else 0


def summarise(report, options):
    reasons = collections.Counter(entry.why for entry in report.results if entry.result == "skipped")
    for why, count in reasons.items():
        print(f"skipped {count}: {why}")
    failed = {entry.name for entry in report.results if entry.result == "failed"}
    for name in report.unsteady:
        if name not in failed:
            print(f"UNSTEADY: {name}: passed at the second try")
    for entry in report.results:
        if entry.result == "failed":
            print(f"FAILED: {entry.name}: {entry.why.splitlines()[0] if entry.why else ''}")
    print(f"{report.count('passed')} passed, {report.count('failed')} failed, {report.count('skipped')} skipped")
    report.write()


if __name__ == "__main__":
    sys.exit(main())
