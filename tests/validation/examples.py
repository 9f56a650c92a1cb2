#!/usr/bin/env python3
"""examples: runs each scenario of examples/ with seed 1, with one thread and with two, and compares the hashes of the results
with the table examples.tsv beside this file. A change that must not change results keeps every row; a change that is meant
to change them writes the table anew and says why.

    python3 tests/validation/examples.py --build build              # what takes seconds, as `make check` does
    python3 tests/validation/examples.py --build build --all        # every file: some minutes and gigabytes of memory
    python3 tests/validation/examples.py --build build --all --write
    python3 tests/validation/examples.py --build build --only 'incast*'"""

import argparse
import concurrent.futures
import fnmatch
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TABLE = HERE / "examples.tsv"
HEADING = "# Written by python3 tests/validation/examples.py --all --write: the hash of each scenario's result with seed 1."
LARGE = {"permutation-8192.yaml", "allreduce-1024.yaml", "gpt13b-128.yaml"}  # only with --all
THREADS = (1, 2)
TIME_LIMIT = 3600
ENDED = (0, 1, 3, 4)  # statuses of `verbena sim` that come with a result


def read_table(path):
    rows = (line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return {name: result for name, result in rows}


def write_table(path, hashes):
    path.write_text("\n".join([HEADING, *(f"{name}\t{hashes[name]}" for name in sorted(hashes))]) + "\n")


def result_hash(verbena, scenario, threads):
    """The hash, or what went wrong instead."""
    command = [verbena, "sim", scenario, "--json", "--no-progress", "--seed", "1", "--threads", str(threads)]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIME_LIMIT)
    if done.returncode not in ENDED or not done.stdout:
        return f"status {done.returncode}: {done.stderr.strip()}"
    return json.loads(done.stdout)["result_hash"]


def unlisted(table, names):
    """What makes the table and the folder differ."""
    yield from (f"{name} is not in the table" for name in sorted(names - table.keys()))
    yield from (f"{name} is in the table, but not in examples/" for name in sorted(table.keys() - names))


def differences(table, name, by_threads):
    for threads, got in by_threads.items():
        if name in table and got != table[name]:
            yield f"{name} with {threads} thread{'s' if threads > 1 else ''}: the table has {table[name]}, the run gave {got}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--verbena", type=pathlib.Path, help="this program instead of the build's")
    parser.add_argument("--examples", type=pathlib.Path, default=ROOT / "examples", help=argparse.SUPPRESS)
    parser.add_argument("--table", type=pathlib.Path, default=TABLE, help=argparse.SUPPRESS)
    parser.add_argument("--all", action="store_true", help=f"also {', '.join(sorted(LARGE))}")
    parser.add_argument("--only", metavar="PATTERN", help="the files whose names match")
    parser.add_argument("--write", action="store_true", help="write what came into the table")
    options = parser.parse_args()
    verbena = (options.verbena or options.build / "src/cli/verbena").resolve()
    table = read_table(options.table) if options.table.exists() else {}
    names = {path.name for path in options.examples.glob("*.yaml")}
    wanted = sorted(name for name in names if (options.all or name not in LARGE) and fnmatch.fnmatch(name, options.only or "*"))

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = {name: {threads: pool.submit(result_hash, verbena, options.examples / name, threads) for threads in THREADS}
                for name in wanted}
        came = {name: {threads: run.result() for threads, run in of.items()} for name, of in runs.items()}

    if options.write:
        undecided = [name for name, of in came.items() if len(set(of.values())) > 1 or " " in next(iter(of.values()))]
        for name in undecided:
            print(f"{name}: {came.pop(name)}")
        kept = {name: row for name, row in table.items() if name in names}
        write_table(options.table, kept | {name: next(iter(of.values())) for name, of in came.items()})
        return 1 if undecided else 0
    wrong = list(unlisted(table, names)) + [line for name in wanted for line in differences(table, name, came[name])]
    print("\n".join(wrong))
    failed = {line.split()[0] for line in wrong}
    print(f"{len(set(wanted) - failed)} passed, {len(failed)} failed, {len(names) - len(wanted)} skipped")
    return 1 if wrong or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
