#!/usr/bin/env python3
"""rdma-core's own test suite on Verbena: unpacked from Debian's python3-pyverbs, run unmodified, and its results
compared with expected.tsv, which says of every test whether it must pass or may be skipped, and why.

It runs over vb_lo with the IPv4 GID and over a veth with the IPv6 GID; and, where interfaces stand beside loopback as on
a machine, over one of them and over vb_lo. Both ends are of one host: bytes go by memory, but for vb_lo a second time and
the veth, where VERBENA_LOCAL=off makes them packets. A process runs one module of the suite, every
test with a deadline; a test that crashes or hangs is a failure that shows the stack, and the rest goes on."""

import argparse
import collections
import contextlib
import fnmatch
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "conformance"))

import places
from process import Failure, Process, describe_status

HUGE_PAGES = 16
SHIPPED = pathlib.Path("/usr/share/doc/rdma-core/tests")
PYTHON = "/usr/bin/python3"  # Debian's, for which Debian's pyverbs is made
# Modules about devices of certain makers only: one process for all of them.
MAKERS = ("test_mlx5_", "test_efa", "test_cuda")

PATHS = ("vb_lo", "vb_lo_wire", "veth", "beside_lo", "lo_beside")
OF_PACKETS = ("vb_lo_wire", "veth")

Result = collections.namedtuple("Result", "test result why")
Rule = collections.namedtuple("Rule", "kind pattern says reason")


# ---- The suite ------------------------------------------------------------------------------------------------------

def unpack(folder):
    """The suite as it wants to be: a package "tests" with nothing compressed. What Debian's container images leave out
    of installed packages (documentation) is taken from the package itself."""
    source = SHIPPED if SHIPPED.is_dir() else download(folder)
    target = pathlib.Path(folder) / "tests"
    target.mkdir()
    for file in source.iterdir():
        if file.suffix == ".gz":
            (target / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
        elif file.suffix == ".py":
            (target / file.name).write_bytes(file.read_bytes())
    return sorted(file.stem for file in target.glob("test_*.py"))


def download(folder):
    packages = pathlib.Path(folder) / "package"
    packages.mkdir(mode=0o777)
    done = subprocess.run(["apt-get", "download", "python3-pyverbs"], cwd=packages, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
    found = list(packages.glob("*.deb"))
    if done.returncode or not found:
        raise places.Unavailable(f"{SHIPPED} is not installed, nor is its package to be had: {done.stderr.strip()}")
    subprocess.run(["dpkg-deb", "-x", found[0], packages / "tree"], check=True)
    return packages / "tree" / SHIPPED.relative_to("/")


def without_netlink(folder):
    """Newer suites ask iproute2's rdma for a device's interface before they look at sysfs, and die where the kernel has
    no RDMA. Ours are not the kernel's: they find an rdma that knows of none."""
    programs = pathlib.Path(folder) / "bin"
    programs.mkdir()
    (programs / "rdma").write_text("#!/bin/sh\necho '[]'\n")
    (programs / "rdma").chmod(0o755)
    os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"


def of_path(modules, name):
    """What is about hardware of certain makers says the same of every device of ours."""
    return modules if name == "vb_lo" else [module for module in modules if not module.startswith(MAKERS)]


def without_absent(modules, build):
    """Its tests of the connection manager find an interface for our devices, and so want our librdmacm."""
    if list(pathlib.Path(build).glob("src/*/librdmacm.so.1")):
        return modules
    print("test_rdmacm is left out: this build has no librdmacm.so.1")
    return [module for module in modules if module != "test_rdmacm"]


def groups(modules):
    """Lists of modules that share a process."""
    makers = [module for module in modules if module.startswith(MAKERS)]
    return ([makers] if makers else []) + [[module] for module in modules if module not in makers]


@contextlib.contextmanager
def huge_pages(count):
    """That many 2 MiB pages for the run, where we may ask the kernel for them; afterwards as it was."""
    setting = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
    try:
        before = int(setting.read_text())
        if before < count:
            setting.write_text(str(count))
    except OSError:
        yield
        return
    try:
        yield
    finally:
        if before < count:
            setting.write_text(str(before))


# ---- Running --------------------------------------------------------------------------------------------------------

class Runner:
    """Runs groups of modules in one place and collects the results of all tests."""

    def __init__(self, place, suite, their_options, seconds):
        self.place = place
        self.suite = suite
        self.their_options = their_options
        self.seconds = seconds
        self.results = {}
        self.ways = set()  # that bytes went

    def run_all(self, waiting):
        workers = [threading.Thread(target=self._work, args=(waiting,)) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def _work(self, waiting):
        while True:
            try:
                modules = waiting.popleft()
            except IndexError:
                return
            self._run_group(modules)

    def _run_group(self, modules):
        """Until every test of the group has a result: a process that dies takes one test with it, not the others."""
        finished = {}
        while True:
            fresh, open_test, process_says = self._run_process(modules, finished)
            finished.update(fresh)
            if open_test:
                finished[open_test] = Result(open_test, "failed", process_says)
            elif process_says and not fresh:
                finished[modules[0]] = Result(modules[0], "failed", process_says)
            if not process_says or not (open_test or fresh):
                break
        self.results.update(finished)

    def _run_process(self, modules, finished):
        """(results, the test it was at when it died, what it said when it died)."""
        with tempfile.NamedTemporaryFile(prefix="report-", dir=self.suite) as report:
            arguments = [PYTHON, "-B", HERE / "driver.py", "--suite", self.suite, "--report", report.name,
                         "--seconds", str(self.seconds)]
            for test in finished:
                arguments.append(f"--leave-out={test}")
            with Process(self.place, arguments + self.their_options + modules, name=" ".join(modules)) as process:
                try:
                    status = process.wait(self.seconds * 20)
                    says = None if status == 0 else f"{describe_status(status)}\n{process.evidence()}"
                except Failure as failure:
                    says = str(failure)
                self.ways |= process.ways()
            lines = [json.loads(line) for line in pathlib.Path(report.name).read_text().splitlines()]
        results, open_test = {}, None
        for line in lines:
            if line["result"] == "began":
                open_test = line["test"]
            else:
                results[line["test"]] = Result(line["test"], line["result"], line["why"])
                open_test = None
        return results, open_test, says


def try_again(runner, fresh):
    """Modules with failures once more, by a fresh runner: what then passes is named as unsteady, and shown."""
    failed = [test for test, result in runner.results.items() if result.result == "failed"]
    fresh.run_all(collections.deque([module] for module in sorted({test.split(".")[0] for test in failed})))
    for test in failed:
        second = fresh.results.get(test)
        if second and second.result == "passed":
            print(f"UNSTEADY: {test} passed at the second try; at first:\n{runner.results[test].why}", flush=True)
            runner.results[test] = second


# ---- What is expected -----------------------------------------------------------------------------------------------

def suite_release():
    """44 of 44.0-2: that of pyverbs, with which the suite comes."""
    shown = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "python3-pyverbs"], capture_output=True, text=True)
    found = re.match(r"\d+", shown.stdout)
    return int(found[0]) if found else 0


def rules_of_release(release):
    """Those of the newest release that is no newer, before those of the ones before it: the first that fits counts."""
    files = {int(file.stem.split("-")[1]): file for file in HERE.glob("expected-*.tsv")}
    rules = [rule for number in sorted(files, reverse=True) if number <= release for rule in read_rules(files[number])]
    gone = {rule.pattern for rule in rules if rule.kind == "gone"}
    return [rule for rule in rules + read_rules(HERE / "expected.tsv") if rule.pattern not in gone]


def read_rules(path):
    rules = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split("\t")
        kind = fields[0]
        if (kind, len(fields)) not in (("pass", 2), ("gone", 2), ("skip", 4), ("either", 4)):
            sys.exit(f"{path}:{number}: neither 'pass|gone TEST' nor 'skip|either TEST MESSAGE REASON', tabs between")
        rules.append(Rule(kind, fields[1], *(fields[2:] or ("", ""))))
    return rules


def rule_for(test, rules):
    """The first that names it; a pattern names many."""
    for rule in rules:
        if rule.pattern == test or fnmatch.fnmatchcase(test, rule.pattern):
            return rule
    return None


def complaint(result, rule):
    """Why this is not what was expected, or None."""
    if result.result == "failed":
        return result.why.rstrip() or "failed"
    if rule is None:
        return f"{result.result}, and expected.tsv does not know it"
    if result.result == "passed":
        return "passed, and expected.tsv says skip" if rule.kind == "skip" else None
    if rule.kind == "pass":
        return f"skipped ({result.why}), and expected.tsv says pass"
    if rule.says not in result.why:
        return f"skipped for another reason than the expected {rule.says!r}: {result.why}"
    return None


def judge(path_name, results, rules, all_of):
    """Prints what is wrong and what was skipped; (passed, failed, skipped). all_of: modules that were run whole."""
    wrong = {}
    skips = collections.Counter()
    for test, result in sorted(results.items()):
        rule = rule_for(test, rules)
        problem = complaint(result, rule)
        if problem:
            wrong[test] = problem
        elif result.result == "skipped":
            skips[rule.reason] += 1
    for rule in rules:
        if rule.kind == "pass" and rule.pattern not in results and rule.pattern.split(".")[0] in all_of:
            wrong[rule.pattern] = "is to pass and was not run"
    for test, problem in wrong.items():
        print(f"\nFAILED  {test} over {path_name}\n" + "\n".join("    " + line for line in problem.splitlines()))
    for reason, count in skips.most_common():
        print(f"skipped {count}: {reason}")
    passed = sum(1 for result in results.values() if result.result == "passed" and result.test not in wrong)
    print(f"{path_name}: {passed} of {len(results)} tests passed", flush=True)
    return passed, len(wrong), sum(skips.values())


# ---- Main -----------------------------------------------------------------------------------------------------------

def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=str(ROOT / "build"), help="build directory with the launcher 'verbena'")
    parser.add_argument("--path", choices=PATHS, help="only this one")
    parser.add_argument("--seconds", type=float, default=30, help="deadline of a test (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="also write the results to FILE")
    parser.add_argument("--second-try", action="store_true", help="run what failed once more; say what was unsteady")
    parser.add_argument("--print", action="store_true", help="a line a test, as it came out")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="only these, as in test_qp")
    return parser.parse_args()


def open_path(world, name):
    """(place, options for the suite)."""
    if name in ("vb_lo", "vb_lo_wire"):
        place, version = world.open("vb_lo").server, 4
    elif name == "veth":
        place, version = world.veth("rc", 1500).server, 6
    else:
        place, version = world.machine("rc")[name == "lo_beside"], 4
    return place, [f"--dev={place.device}", "--port=1", f"--gid={place.gid_index(version)}"]


def run_path(name, world, suite, modules, options):
    place, their_options = open_path(world, name)
    began = time.monotonic()
    print(f"over {name}: {' '.join(their_options)}", flush=True)
    runner = Runner(place, suite, their_options, options.seconds)
    runner.run_all(collections.deque(groups(modules)))
    if options.second_try:
        try_again(runner, Runner(place, suite, their_options, options.seconds))
    print(f"{len(runner.results)} tests after {time.monotonic() - began:.0f} s")
    if ("local" in runner.ways) == (name in OF_PACKETS) and not options.modules:
        runner.results["the way"] = Result("the way", "failed", f"bytes went {' and '.join(sorted(runner.ways))}")
    return runner.results


def main():
    options = parse_arguments()
    launcher = str(pathlib.Path(options.build).resolve() / "verbena")
    if not os.path.exists(launcher):
        sys.exit(f"{launcher} is not there: type make first")
    rules = rules_of_release(suite_release())
    totals = [0, 0, 0]
    rows = []
    with tempfile.TemporaryDirectory(prefix="verbena-") as suite, huge_pages(HUGE_PAGES):
        modules = without_absent(unpack(suite), options.build)
        without_netlink(suite)
        for name in [options.path] if options.path else PATHS:
            world = places.World(launcher, places.WIRE if name in OF_PACKETS else None)
            try:
                chosen = options.modules or of_path(modules, name)
                results = run_path(name, world, suite, chosen, options)
            except places.Unavailable as reason:
                print(f"skipped {name}: {reason}")
                totals[2] += 1
                continue
            finally:
                world.close()
            if options.print:
                for result in sorted(results.values()):
                    print(f"{result.result}\t{result.test}\t{(result.why.splitlines() or [''])[-1]}")
            rows += [{"path": name, **result._asdict()} for result in results.values()]
            for index, count in enumerate(judge(name, results, rules, chosen)):
                totals[index] += count
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"tests": rows}, indent=1) + "\n")
    print(f"{totals[0]} passed, {totals[1]} failed, {totals[2]} skipped")
    return 1 if totals[1] else 0


if __name__ == "__main__":
    sys.exit(main())
