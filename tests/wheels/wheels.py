#!/usr/bin/env python3
"""What people of machine learning install from PyPI, unmodified, on Verbena: installs pinned wheels into a virtual
environment, runs them between two network namespaces and judges data and bytes."""

import argparse
import os
import pathlib
import signal
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/conformance"))

import checks
import packages
import places
from run import Report, judge, summarise


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, epilog="All wheels take 7 GB of disk, torch alone 5.5; what is "
                                     "installed stays for the next run.")
    parser.add_argument("--build", default=str(ROOT / "build"), help="build directory with the launcher 'verbena'")
    parser.add_argument("--venv", metavar="DIRECTORY", help="the virtual environment (BUILD/venv-wheels)")
    parser.add_argument("--wheel", metavar="FILE", help="install Verbena's own wheel as well (make wheel), and use it, not the build")
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="only checks whose name contains NAME (several: any of them)")
    parser.add_argument("--list", action="store_true", help="print the checks and what they install, and stop")
    parser.add_argument("--json", metavar="FILE", help="also write the results to FILE")
    return parser.parse_args()


def end_nicely(*_):
    raise KeyboardInterrupt


def clear(context):
    """Nothing stays in the check's namespaces: launchers leave helpers behind when they are killed, and brokers linger."""
    for place in (context.path.server, context.path.client):
        for pid, _ in places.processes(place):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def run(check, environment, launcher, build, report):
    """One check in namespaces of its own."""
    print(f"{check.name} ...", flush=True)
    world = places.World(launcher)
    context = None

    def body():
        nonlocal context
        try:
            environment.install(check.group)
        except packages.NotInstalled as reason:
            raise places.Unavailable(str(reason))
        with tempfile.TemporaryDirectory(prefix="verbena-wheels-") as scratch:
            context = checks.Context(world, environment, build, scratch, check.is_alone)
            check.run(context)

    try:
        judge(check.name, report, body)
    finally:
        if context:
            clear(context)
        world.close()
    for line in context.figures if context else ():
        print(f"        {line}", flush=True)


def print_list(chosen):
    for check in chosen:
        wheels = ", ".join(f"{wheel.name} {wheel.version}" for wheel in packages.GROUPS[check.group])
        print(f"{check.name} [{wheels or 'nothing to install'}]")


def main():
    options = parse_arguments()
    chosen = [check for check in checks.CHECKS if not options.only or any(name in check.name for name in options.only)]
    if options.list:
        print_list(chosen)
        return 0
    if not chosen:
        sys.exit(f"no check's name contains {' or '.join(options.only)}; --list shows them")
    if not options.wheel and not (pathlib.Path(options.build) / "verbena").exists():
        sys.exit(f"{options.build}/verbena is not there: type make first")

    signal.signal(signal.SIGTERM, end_nicely)
    environment = packages.Environment(options.venv or pathlib.Path(options.build) / "venv-wheels")
    if options.wheel:
        environment.install_file(options.wheel)
    options.verbose, options.stop_after, options.second_try = True, 0, False
    report = Report(len(chosen), options)
    launcher = str(environment.program("verbena") if options.wheel else pathlib.Path(options.build).resolve() / "verbena")
    try:
        for check in chosen:
            run(check, environment, launcher, options.build, report)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        report.total = len(report.results)
        summarise(report, options)
        return 130
    summarise(report, options)
    return 1 if report.count("failed") else 0


if __name__ == "__main__":
    sys.exit(main())
