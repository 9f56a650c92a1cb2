#!/usr/bin/env python3
"""symbols__are_those_of_every_release: what a built library exports, compared with rdma-core's releases 28 to 65.
Usage: symbols_test.py LIBRARY PREFIX LIST. The list has a row a symbol: name, kind, and NODE:RELEASE for each version
node that has it and the release that put it there."""
import collections
import os
import re
import subprocess
import sys

RELEASES = range(28, 66)
OURS = ("VERBENA_PRIVATE", "VERBENA_PRELOAD")  # what only our own libraries ask for

Row = collections.namedtuple("Row", "name kind nodes")  # nodes: {node: release}


def read_rows(path, prefix):
    with open(path) as lines:
        for line in lines:
            if line.startswith("#"):
                continue
            name, kind, nodes = line.rstrip("\n").split("\t")
            pairs = (node.split(":") for node in nodes.split())
            yield Row(name, kind, {f"{prefix}_{node}": int(release) for node, release in pairs})


def node_order(node):
    """Public nodes by version, private ones by generation."""
    return [int(number) for number in re.findall(r"\d+", node)]


def is_default(row, node, newest_private):
    """What a program that names no version gets: the newest public variant, or the newest private node's."""
    if row.kind == "old":
        return False
    if "PRIVATE" in node:
        return node == newest_private
    return node == max(row.nodes, key=node_order)


def expected(rows):
    """{symbol with node: kind}."""
    private = [node for row in rows for node in row.nodes if "PRIVATE" in node]
    newest = max(private, key=node_order, default=None)
    return {row.name + ("@@" if is_default(row, node, newest) else "@") + node: row.kind
            for row in rows for node in row.nodes}


def exported(library):
    """{symbol with node: (nm's letter, size)}."""
    run = subprocess.run(["nm", "-D", "-S", "--with-symbol-versions", "--defined-only", library], check=True,
                         capture_output=True, text=True)
    symbols = {}
    for line in run.stdout.splitlines():
        *numbers, letter, name = line.split()
        if letter != "A" and not name.endswith(OURS):  # A: the version nodes themselves
            symbols[name] = (letter, int(numbers[1], 16) if len(numbers) > 1 else 0)
    return symbols


def kind_fault(kind, letter, size):
    """None, or what is wrong: data has the size that is compiled into programs."""
    if kind in ("function", "old"):
        return None if letter == "T" else f"is no function but {letter}"
    wanted = int(kind.split()[1])
    return None if letter in "BD" and size == wanted else f"is {letter} of {size} bytes, not data of {wanted}"


def chain_faults(library, prefix):
    """Public nodes inherit, each from the one before it; private ones from none."""
    text = subprocess.run(["readelf", "-V", "-W", library], check=True, capture_output=True, text=True).stdout
    section = text.split("Version definition section", 1)[1].split("Version needs section", 1)[0]
    parents = {}
    for line in section.splitlines():
        if definition := re.search(r"Name: (\S+)$", line):
            latest = definition[1]
            parents[latest] = []
        elif parent := re.search(r"Parent \d+: (\S+)$", line):
            parents[latest].append(parent[1])
    public = sorted((node for node in parents if re.fullmatch(prefix + r"_\d+\.\d+", node)), key=node_order)
    for before, node in zip([None] + public, public):
        if parents[node] != ([before] if before else []):
            yield f"{node} inherits from {parents[node]}, not {before}"
    yield from (f"{node} inherits" for node in parents if "PRIVATE" in node and parents[node])


def release_faults(rows, have):
    """What a library or program of each release would not find."""
    names = {name.replace("@@", "@") for name in have}
    for release in RELEASES:
        missing = [f"{row.name}@{node}" for row in rows for node, since in row.nodes.items()
                   if since <= release and f"{row.name}@{node}" not in names]
        if missing:
            yield f"rdma-core {release}: missing {len(missing)}, {', '.join(missing[:3])} ..."


def main():
    library, prefix, listing = sys.argv[1:]
    rows = list(read_rows(listing, prefix))
    want, have = expected(rows), exported(library)
    faults = ["missing: " + name for name in sorted(want.keys() - have.keys())]
    faults += ["too many: " + name for name in sorted(have.keys() - want.keys())]
    for name in sorted(want.keys() & have.keys()):
        fault = kind_fault(want[name], *have[name])
        if fault:
            faults.append(f"{name} {fault}")
    faults += release_faults(rows, have)
    faults += chain_faults(library, prefix)
    dynamic = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout
    for sign in ("soname: [%s]" % os.path.basename(library), "NODELETE"):
        if sign not in dynamic:
            faults.append("not linked as it must be: no " + sign)
    print("\n".join(faults) if faults else "%d symbols as expected" % len(want))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
