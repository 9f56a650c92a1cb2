#!/usr/bin/env python3
"""compare.py OLD NEW [-r ROUNDS] [-s SECONDS] [ROW...]: what the engine costs in two builds, each a build directory or an
engine_bench, and NEW's share of OLD. Both run turn about, a row at a time, so that what the machine does besides meets
both; CPU time, the best slice of all. A ROW is any part of the name of a row."""

import argparse
import pathlib
import re
import subprocess


def program(text):
    path = pathlib.Path(text)
    return (path / "bench/engine_bench" if path.is_dir() else path).resolve(strict=True)


def rows_of(text):
    """{name: nanoseconds a packet} of what engine_bench says."""
    return {name: float(ns) for name, ns in re.findall(r"^(.*?)\s{2,}([\d.]+) ns a packet", text, re.M)}


def measure(bench, seconds, *row):
    return rows_of(subprocess.run([bench, str(seconds), *row], check=True, stdout=subprocess.PIPE, text=True).stdout)


def best(benches, row, rounds, seconds):
    """The least that each took of row."""
    taken = [[] for _ in benches]
    for turn in range(rounds):
        order = range(len(benches)) if turn % 2 == 0 else reversed(range(len(benches)))
        for which in order:
            taken[which].append(measure(benches[which], seconds, row)[row])
    return [min(each) for each in taken]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=program)
    parser.add_argument("new", type=program)
    parser.add_argument("row", nargs="*", help="rows whose names have this in them; all")
    parser.add_argument("-r", "--rounds", type=int, default=10)
    parser.add_argument("-s", "--seconds", type=float, default=0.1, help="of a row in each round")
    args = parser.parse_intermixed_args()
    known = measure(args.old, 0.01)
    names = [name for name in measure(args.new, 0.01)
             if name in known and (not args.row or any(part in name for part in args.row))]
    print(f"{'ns of CPU a packet':44} {'old':>8} {'new':>8} {'ratio':>6}")
    for name in names:
        old, new = best((args.old, args.new), name, args.rounds, args.seconds)
        print(f"{name:44} {old:8.1f} {new:8.1f} {new / old:6.2f}")


if __name__ == "__main__":
    main()
