"""UCX's gtest program: what it lists, and what of its tests comes out, when one of them crashes or hangs too."""

import collections
import re
import time

from process import Failure, Process, describe_status

FILTER = "*rc_verbs*:*ud_verbs*:ib/*:rdmacm/*:rc/*:ud/*"
BATCH = 40  # tests a process: each begins with a second of static initialisation
# An error is to end the process, not to freeze it for a debugger.
SETTINGS = {"UCX_HANDLE_ERRORS": "bt", "UCX_LOG_LEVEL": "warn"}

Outcome = collections.namedtuple("Outcome", "name result why")


def parse_list(text):
    """Names, from --gtest_list_tests: a suite's line ends with a dot, its tests are indented."""
    names, suite = [], ""
    for line in text.splitlines():
        if re.match(r"\S+\.( |$)", line):
            suite = line.split()[0]
        elif suite and re.match(r"  \S", line):
            names.append(suite + line.split()[0])
    return names


def parse_run(text):
    """(outcomes, the test that began and did not end or None, its lines)."""
    outcomes, test, said = [], None, []
    for line in text.splitlines():
        began = re.match(r"\[ RUN      \] (\S+)", line)
        ended = re.match(r"\[ +(OK|FAILED|SKIPPED) +\] ", line)
        if began:
            test, said = began[1], []
        elif test and ended:
            outcomes.append(outcome(test, ended[1], said))
            test = None
        elif test:
            said.append(line)
    return outcomes, test, said


def outcome(test, word, said):
    """UCX's own way to skip is a line of the test, which then ends well."""
    skip = next((line for line in said if re.match(r"\[ +SKIP +\]", line)), None)
    if word == "FAILED":
        return Outcome(test, "failed", "\n".join(said) or "failed")
    if skip or word == "SKIPPED":
        reason = skip.partition("]")[2].strip()[1:-1] if skip else "\n".join(said)
        return Outcome(test, "skipped", reason or "it gives no reason")
    return Outcome(test, "passed", "")


class Suite:
    """The tests of one program in one place."""

    def __init__(self, program, place, seconds):
        self.program = program
        self.place = place
        self.seconds = seconds
        self.bytes = 0  # sent by Verbena in all batches: UCX would go another way in silence

    def names(self, wanted):
        wanted = wanted or FILTER
        with self._process(["--gtest_list_tests", f"--gtest_filter={wanted}"], "list") as process:
            process.wait_success(120)
        return parse_list(process.stdout)

    def run(self, names):
        """Outcomes as they come, batch by batch: the test that ends the process is the one that fails."""
        left = list(names)
        while left:
            outcomes, died = self._batch(left[:BATCH])
            if not outcomes and not died:
                raise Failure(f"{self.program} ran none of {left[:BATCH]}")
            if died:
                outcomes.append(died)
            yield from outcomes
            done = {entry.name for entry in outcomes}
            left = [name for name in left if name not in done]

    def _batch(self, names):
        """(outcomes, the outcome of the test at which the process died, or None)."""
        with self._process(["--gtest_filter=" + ":".join(names)], names[0]) as process:
            status = self._wait(process)
            outcomes, test, said = parse_run(process.stdout)
            self.bytes += process.stats().get("tx_bytes", 0)
            if test is None and (outcomes or status == 0):
                return outcomes, None
            end = f"hang: nothing for {self.seconds:g} s" if status is None else describe_status(status)
            why = "\n".join([end, *said[-20:], *process.stderr.splitlines()[-20:]])
            return outcomes, Outcome(test or names[0], "failed", why)

    def _wait(self, process):
        """Its status; None once it has printed nothing for that many seconds."""
        seen, since = "", time.monotonic()
        while process.status is None:
            tail = process.stdout_tail()
            if tail != seen:
                seen, since = tail, time.monotonic()
            if time.monotonic() - since > self.seconds:
                process.kill()
                return None
            time.sleep(0.05)
        return process.status

    def _process(self, arguments, name):
        return Process(self.place, [self.program, *arguments], settings=SETTINGS, name=f"gtest {name}")
