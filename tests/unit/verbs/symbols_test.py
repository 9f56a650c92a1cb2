#!/usr/bin/env python3
"""symbols__are_the_distributions: what a built library exports, compared with the list of Debian 12's.
Usage: symbols_test.py LIBRARY LIST. The list has a row a symbol: name, version node, kind."""
import os
import re
import subprocess
import sys


def expected(path):
    with open(path) as rows:
        next(rows)
        for row in rows:
            name, node, kind = row.rstrip("\n").split("\t")
            at = "@" if "non-default" in kind else "@@"
            letters = "BD" if kind.startswith("data") else "T"
            yield name + at + node, letters


def exported(library):
    run = subprocess.run(["nm", "-D", "--with-symbol-versions", "--defined-only", library], check=True,
                         capture_output=True, text=True)
    for line in run.stdout.splitlines():
        _, letter, name = line.split()
        # Not the version nodes themselves, and not what only our own librdmacm asks for.
        if letter != "A" and not name.endswith("@@VERBENA_PRIVATE"):
            yield name, letter


def data_sizes(library):
    run = subprocess.run(["nm", "-D", "-S", "--defined-only", library], check=True, capture_output=True, text=True)
    return {m[2].split("@")[0]: int(m[1], 16)
            for m in re.finditer(r"^\w+ (\w+) [BD] (\S+)$", run.stdout, re.MULTILINE)}


def main():
    library, listing = sys.argv[1:]
    want, have = dict(expected(listing)), dict(exported(library))
    faults = ["missing: " + name for name in sorted(want.keys() - have.keys())]
    faults += ["too many: " + name for name in sorted(have.keys() - want.keys())]
    faults += ["%s is of kind %s" % (name, have[name]) for name in sorted(want.keys() & have.keys())
               if have[name] not in want[name]]
    size = data_sizes(library).get("verbs_allow_disassociate_destroy")
    if size != 1 and "verbs_allow_disassociate_destroy@@IBVERBS_PRIVATE_34" in want:
        faults.append("verbs_allow_disassociate_destroy has %s bytes, not 1" % size)
    dynamic = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout
    for sign in ("soname: [%s]" % os.path.basename(library), "NODELETE"):
        if sign not in dynamic:
            faults.append("not linked as it must be: no " + sign)
    print("\n".join(faults) if faults else "%d symbols as expected" % len(want))
    return 1 if faults else 0


sys.exit(main())
