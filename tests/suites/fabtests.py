"""libfabric's fabtests: the tests that its runfabtests.sh lists, started as it starts them, over each way to use verbs, within one host
and between two. We do not run that script: it knows other hosts by ssh alone, and at a timeout it kills every "fi_" of the machine."""

import contextlib
import errno
import fnmatch
import re
import shlex
import time

from gtest import Outcome
from process import Process, describe_status

PROVIDERS = ("verbs", "verbs;ofi_rxm", "verbs;ofi_rxd")
QUICK = ("unit", "neg_unit", "functional", "short")  # its own choice of sets when none is named
RANKS = 3
UBER_TIMES = 20  # fi_ubertest, hundreds of cases, may take so many times as long as another test
SERVER_STARTS = 1  # seconds, as in the script: a server that listens through RDMA CM cannot be seen to
NOT_OFFERED = {errno.ENODATA: "it finds no such provider (ENODATA)", errno.ENOSYS: "the provider does not do it (ENOSYS)"}
UBER_GOOD, UBER_BAD = r"^Success: *(\d+)", r"^(?:ENOSYS|ERROR): *(\d+)"


def parse_sets(script):
    """{set: its tests}, from the script's arrays: NAME_tests=( "TEST" ... )."""
    arrays = re.findall(r"^(\w+)_tests=\((.*?)^\)", script, re.M | re.S)
    return {name: re.findall(r'"(.*?)"', body) for name, body in arrays if not name.startswith("prov_")}


def parse_excluded(text):
    """Patterns of the tests that libfabric says a provider is not to be tried with."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def judge(statuses):
    """(result, why) from the exit statuses of a test's processes; None for one that had to be ended."""
    for status, why in NOT_OFFERED.items():
        if set(statuses) == {status}:
            return "skipped", why
    if any(statuses) or None in statuses:
        return "failed", ", ".join("hang" if status is None else describe_status(status) for status in statuses)
    return "passed", ""


def as_failure(status):
    """Of a test that is started to fail: it must find no such provider."""
    return {None: None, errno.ENODATA: 0}.get(status, status or 1)


def judge_uber(statuses, said):
    """fi_ubertest counts the cases of its file, and ends well although some of them failed."""
    result, why = judge(statuses)
    good, bad = (sum(map(int, re.findall(pattern, said, re.M))) for pattern in (UBER_GOOD, UBER_BAD))
    if result == "passed" and (bad or not good):
        return "failed", f"{bad} of its cases failed, {good} passed"
    return result, why


class Suite:
    """All of fabtests over some paths: {name: Path}."""

    def __init__(self, prefix, paths, seconds):
        self.prefix = prefix
        self.paths = paths
        self.seconds = seconds
        self.bytes = 0
        self.sets = parse_sets((prefix / "bin/runfabtests.sh").read_text())
        self.excluded = {provider: self._read_excluded(provider) for provider in PROVIDERS}

    def names(self, wanted):
        """"PATH PROVIDER SET: TEST" of all that has the wanted text in it; of the quick sets when nothing is wanted."""
        names = [f"{path} {provider} {chosen}: {test}" for path in self.paths for provider in PROVIDERS
                 for chosen, tests in self.sets.items() if wanted or chosen in QUICK for test in tests]
        return [name for name in names if fnmatch.fnmatchcase(name, f"*{wanted or ''}*")]

    def run(self, names):
        for name in names:
            place, _, test = name.partition(": ")
            path, provider, chosen = place.split(" ")
            if any(re.search(pattern, test) for pattern in self.excluded[provider]):
                yield Outcome(name, "skipped", f"libfabric's {self._exclusions(provider).name} names it")
            else:
                yield self._run(name, self.paths[path], provider, chosen, test)

    def _run(self, name, path, provider, chosen, test):
        with contextlib.ExitStack() as running:
            processes = []

            def start(place, *arguments):
                processes.append(running.enter_context(Process(place, arguments)))

            self._start(start, path, provider, chosen, test)
            statuses = self._wait(processes, self.seconds * (UBER_TIMES if chosen == "complex" else 1))
        if chosen == "complex":
            result, why = judge_uber(statuses, processes[-1].stdout)
        else:
            result, why = judge([as_failure(status) for status in statuses] if chosen == "neg_unit" else statuses)
        if result == "failed":
            why = "\n".join([why, *(process.evidence() for process in processes)])
        self.bytes += sum(process.stats().get("tx_bytes", 0) for process in processes)
        return Outcome(name, result, why)

    def _start(self, start, path, provider, chosen, test):
        """Starts the processes of one test: start(place, *arguments)."""
        server, client = path.server.address[4], path.client.address[4]
        program, *options = shlex.split(test.replace("GOOD_ADDR", server).replace("SERVER_ADDR", server))
        command = [self.prefix / "bin" / program, *options]
        if chosen in ("unit", "neg_unit", "regression"):
            start(path.server, *command, "-p", provider)
        elif chosen == "complex":
            start(path.server, *command, "-x")
            time.sleep(SERVER_STARTS)
            start(path.client, *command, "-u", self._cases(provider), server)
        elif chosen == "multinode":
            for rank in range(RANKS):
                start(path.client if rank else path.server, *command, "-n", RANKS, "-p", provider, "-s", server)
                time.sleep(0 if rank else SERVER_STARTS)
        else:
            start(path.server, *command, "-p", provider, "-s", server)
            time.sleep(SERVER_STARTS)
            start(path.client, *command, "-p", provider, "-s", client, server)

    def _wait(self, processes, seconds):
        """Statuses once all have ended; 2 s after one of them ended badly the others are as good as lost."""
        deadline = time.monotonic() + seconds
        while any(process.status is None for process in processes) and time.monotonic() < deadline:
            if any(process.status for process in processes):
                deadline = min(deadline, time.monotonic() + 2)
            time.sleep(0.02)
        statuses = [process.status for process in processes]
        for process in processes:
            process.kill()
        return statuses

    def _folder(self, provider):
        """Of a provider's lists: those of a layer above verbs are the layer's."""
        return self.prefix / "share/fabtests/test_configs" / provider.split(";")[-1]

    def _exclusions(self, provider):
        return self._folder(provider) / f"{self._folder(provider).name}.exclude"

    def _read_excluded(self, provider):
        return parse_excluded(self._exclusions(provider).read_text())

    def _cases(self, provider):
        """The file of fi_ubertest's cases."""
        return self._folder(provider) / ("quick.test" if provider == "verbs" else "verbs.test")
