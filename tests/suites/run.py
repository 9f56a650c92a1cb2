#!/usr/bin/env python3
"""The test suites of libraries that programs use RDMA through, unmodified, on Verbena: UCX's gtest, libfabric's fabtests.

Each runs under `verbena run` in network namespaces of its own, with one device each. ucx.tsv and fabtests.tsv say which tests
are known to fail, of what kind each is and why; any other failure is unexpected."""

import argparse
import collections
import fnmatch
import json
import pathlib
import sys
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "conformance"))

import fabtests
import gtest
import places
import sources

UNAVAILABLE = 77
KINDS = ("theirs", "driver", "not offered", "ours")
PACKAGES = {"ucx": "ucx", "fabtests": "libfabric"}

Rule = collections.namedtuple("Rule", "pattern kind reason")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("suite", choices=PACKAGES)
    parser.add_argument("--build", default=str(ROOT / "build"), help="build directory with the launcher 'verbena'")
    parser.add_argument("--source", metavar="TREE", help="the suite's source tree (Debian's source package, by apt-get)")
    parser.add_argument("--folder", help="where the suite is unpacked and built, once (build-SUITE/)")
    parser.add_argument("--filter", metavar="PATTERN", help="only these tests: for UCX in gtest's form, else a part of the name")
    parser.add_argument("--shard", type=shard, default=(1, 1), metavar="I/N", help="every N-th test, beginning with the I-th")
    parser.add_argument("--seconds", type=float, default=60, help="a test that prints nothing for so long hangs (%(default)s)")
    parser.add_argument("--list", action="store_true", help="print the tests and stop")
    parser.add_argument("--json", metavar="FILE", help="also write the results to FILE")
    return parser.parse_args()


def shard(text):
    """(I, N) of I/N."""
    index, _, count = text.partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text} is not I/N, with I from 1 to N")
    return int(index), int(count)


# ---- What is known --------------------------------------------------------------------------------------------------

def read_rules(path):
    rules = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 3 or fields[1] not in KINDS:
            sys.exit(f"{path}:{number}: not PATTERN, KIND ({', '.join(KINDS)}) and REASON, tabs between")
        rules.append(Rule(*fields))
    return rules


def rule_for(name, rules):
    return next((rule for rule in rules if fnmatch.fnmatchcase(name, rule.pattern)), None)


def passes_though_listed(outcomes, rules):
    """Rules of which tests ran, and every one of them passed: such a rule is to go."""
    results = collections.defaultdict(set)
    for entry in outcomes:
        results[rule_for(entry.name, rules)].add(entry.result)
    return [rule for rule in rules if results[rule] == {"passed"}]


# ---- Running --------------------------------------------------------------------------------------------------------

def settled(place, seconds=10):
    """The place once its addresses are valid: a late one changes the GID table, and UCX fails a test that hears of it."""
    deadline = time.monotonic() + seconds
    while place.run("ip", "-6", "address", "show", "tentative").stdout:
        if time.monotonic() > deadline:
            raise places.Unavailable(f"an IPv6 address is tentative for more than {seconds} s")
        time.sleep(0.1)
    return place


def one_device(world):
    """A host with two interfaces, of which programs see one; it carries every path MTU: UCX's tests ask for 2048 and 4096."""
    place = world.machine("suite")[0]
    for interface in ("vbt0", "vbt1"):
        place.run("ip", "link", "set", interface, "mtu", "4200")
    place.settings = {**place.settings, "VERBENA_DEVICES": "vbt0"}
    return settled(place)


def two_hosts(world):
    path = world.veth("suite", 1500)
    settled(path.server)
    settled(path.client)
    return path


def open_suite(options, world):
    folder = sources.Folder(options.folder or ROOT / f"build-{options.suite}")
    tree = folder.tree(PACKAGES[options.suite], options.source)
    if options.suite == "ucx":
        return gtest.Suite(folder.build_ucx(tree), one_device(world), options.seconds)
    prefix = folder.build_fabtests(tree)
    host = one_device(world)
    return fabtests.Suite(prefix, {"host": places.Path("host", host, host, 4096), "wire": two_hosts(world)}, options.seconds)


def run(suite, names, rules):
    """Outcomes, each failure shown as it comes unless it is known."""
    outcomes = []
    try:
        for entry in suite.run(names):
            outcomes.append(entry)
            if entry.result == "failed" and not rule_for(entry.name, rules):
                print(f"\nFAILED  {entry.name}\n" + "\n".join("    " + line for line in entry.why.splitlines()), flush=True)
            if len(outcomes) % 50 == 0:
                print(f"{len(outcomes)} so far", flush=True)
    except KeyboardInterrupt:
        print("interrupted: the rest was not run", flush=True)
    return outcomes


def summarise(outcomes, rules, is_whole):
    """Prints what came out; the number of results that nobody expects."""
    failed = [entry for entry in outcomes if entry.result == "failed"]
    known = collections.Counter(rule_for(entry.name, rules) for entry in failed)
    unexpected = [entry for entry in failed if not rule_for(entry.name, rules)]
    skips = collections.Counter(entry.why for entry in outcomes if entry.result == "skipped")
    for why, count in skips.most_common():
        print(f"skipped {count}: {why}")
    for rule, count in known.items():
        if rule:
            print(f"failed {count} as listed ({rule.kind}): {rule.reason}")
    for entry in unexpected:
        print(f"FAILED: {entry.name}: {entry.why.splitlines()[0]}")
    gone = passes_though_listed(outcomes, rules) if is_whole else []
    for rule in gone:
        print(f"FAILED: {rule.pattern} is listed and passes")
    print(f"{sum(entry.result == 'passed' for entry in outcomes)} passed, {len(failed)} failed, {skips.total()} skipped")
    return len(unexpected) + len(gone)


def main():
    options = parse_arguments()
    launcher = pathlib.Path(options.build).resolve() / "verbena"
    if not launcher.exists():
        sys.exit(f"{launcher} is not there: type make first")
    rules = read_rules(HERE / f"{options.suite}.tsv")
    world = places.World(str(launcher))
    try:
        suite = open_suite(options, world)
        index, count = options.shard
        names = suite.names(options.filter)[index - 1::count]
        if options.list:
            print("\n".join(names))
            return 0
        if not names:
            sys.exit("no test has such a name; --list shows them")
        outcomes = run(suite, names, rules)
    except places.Unavailable as reason:
        print(f"skipped: {reason}")
        return UNAVAILABLE
    finally:
        world.close()
    if options.json:
        rows = [entry._asdict() for entry in outcomes]
        pathlib.Path(options.json).write_text(json.dumps({"tests": rows}, indent=1) + "\n")
    print(f"Verbena sent {suite.bytes} bytes")
    return 1 if summarise(outcomes, rules, not options.filter and count == 1) else 0


if __name__ == "__main__":
    sys.exit(main())
