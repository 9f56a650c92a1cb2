#!/usr/bin/env python3
"""Portability: from nothing, in clean roots of Debian 12 and 13 made by mmdebstrap, everything that a person would do
there: install what it wants, build, try, test, package, copy, cross-build. One table at the end. Needs root and the
Debian archive; an hour or two on two cores. Nothing stays behind but the log, also after Ctrl-C."""

import argparse
import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import checks
import root

TREE = pathlib.Path(__file__).resolve().parent.parent.parent
SUITES = {"12": "bookworm", "13": "trixie"}
NEEDED = ("root", "packages", "build")    # without these the rest of a distribution is not tried


class Context(collections.namedtuple("Context", "root tree suites mirror folder")):
    def other_root(self, name, suite):
        return root.Root(suite, self.folder / name, self.root._log_path)

    @staticmethod
    def copy(source, target):
        subprocess.run(["cp", "-a", source, target], check=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--debian", action="append", choices=SUITES, help="only on this release (several)")
    parser.add_argument("--only", action="append", default=[], metavar="CHECK",
                        help="only this check, and what it stands on (several; --list tells their names)")
    parser.add_argument("--list", action="store_true", help="print the names of the checks and stop")
    parser.add_argument("--json", metavar="FILE", help="also write the results to FILE")
    parser.add_argument("--directory", metavar="DIR", help="where roots are made (default: a temporary directory)")
    parser.add_argument("--keep", action="store_true", help="leave the roots, to look at or to go on with")
    parser.add_argument("--mirror", default=root.MIRROR, help="the Debian archive (%(default)s)")
    parser.add_argument("--log", default="portability.log", help="what the commands printed (%(default)s)")
    options = parser.parse_args()
    unknown = set(options.only) - {check.name for check in checks.CHECKS}
    if unknown:
        parser.error(f"no check is called {', '.join(sorted(unknown))}; --list tells their names")
    return options


def is_there(context, name):
    """Whether an earlier run with --directory has left what this check makes."""
    tree = context.root.path / "src/verbena"
    made = {"root": tree, "packages": context.root.path / "usr/bin/ib_write_bw", "build": tree / "build/build.ninja"}
    return made[name].exists()


def run_debian(release, options, folder):
    """[(check, result, what it said, seconds)]"""
    suite = SUITES[release]
    context = Context(root.Root(suite, folder / suite, options.log), TREE, list(SUITES.values()), options.mirror, folder)
    results, is_broken = [], False
    if is_there(context, "root"):
        context.root.put_tree(TREE)
    for number, check in enumerate(checks.CHECKS, 1):
        is_wanted = not options.only or check.name in options.only or \
            (check.name in NEEDED and not is_there(context, check.name))
        if not is_wanted:
            continue
        print(f"Debian {release}, {number} of {len(checks.CHECKS)}: {check.title} ...", flush=True)
        began = time.monotonic()
        try:
            if is_broken:
                raise root.Broken("not tried: what it stands on failed")
            said, result = check.function(context), "passed"
        except root.Broken as error:
            said, result = str(error), "failed"
            is_broken = is_broken or check.name in NEEDED
        seconds = time.monotonic() - began
        print(f"  {result} after {seconds:.0f} s: {said}", flush=True)
        results.append({"debian": release, "check": check.name, "result": result, "said": said, "seconds": round(seconds)})
    if not options.keep:
        context.root.remove()
    return results


def print_table(results):
    print(f"\n{'':13}" + "".join(f"{'Debian ' + release:12}" for release in SUITES))
    by_place = {(result["check"], result["debian"]): result for result in results}
    for check in checks.CHECKS:
        row = [by_place.get((check.name, release)) for release in SUITES]
        if any(row):
            print(f"{check.name:13}" + "".join(f"{one['result'] if one else '-':12}" for one in row) + check.title)
            for release, one in zip(SUITES, row):
                if one:
                    print(f"{'':15}{release}: {one['said'].splitlines()[0] if one['said'] else ''}")


def main():
    options = parse_arguments()
    if options.list:
        for check in checks.CHECKS:
            print(f"{check.name:13}{check.title}")
        return 0
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        print("portability: needs root and mmdebstrap (scripts/install-deps portability)", file=sys.stderr)
        return 2
    options.log = pathlib.Path(options.log).resolve()
    options.log.write_text("")
    folder = pathlib.Path(options.directory or tempfile.mkdtemp(prefix="verbena-portability-"))
    folder.mkdir(parents=True, exist_ok=True)
    results = []
    for number in (signal.SIGINT, signal.SIGTERM):    # also where a shell in the background has it ignored
        signal.signal(number, signal.default_int_handler)
    try:
        for release in options.debian or SUITES:
            results += run_debian(release, options, folder)
    except KeyboardInterrupt:
        print("\nportability: interrupted", file=sys.stderr)
    finally:
        if not options.keep and not options.directory:
            shutil.rmtree(folder, ignore_errors=True)
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")
    print_table(results)
    failed = sum(result["result"] != "passed" for result in results)
    print(f"{len(results) - failed} passed, {failed} failed; what the commands printed is in {options.log}")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
