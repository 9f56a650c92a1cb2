"""libfabric's fabtests: what its runfabtests.sh runs over one provider, and the results in its table."""

import re

from gtest import Outcome
from process import Failure, Process

PROVIDER = "verbs;ofi_rxm"
RESULTS = {"Pass": "passed", "Fail": "failed", "Notrun": "skipped", "Excluded": "skipped"}


def parse_results(text):
    """Outcomes, from "- name: TEST", "  result: Pass", and the output of what failed below them."""
    outcomes = []
    for block in re.split(r"^- name: +", text, flags=re.M)[1:]:
        name = block.splitlines()[0].strip()
        result = re.search(r"^  result: (\w+)", block, re.M)
        if result:
            why = {"passed": "", "failed": block}.get(RESULTS[result[1]], result[1])
            outcomes.append(Outcome(name, RESULTS[result[1]], why))
    return outcomes


class Suite:
    """runfabtests.sh as a whole: it gives each of its tests a deadline itself."""

    def __init__(self, prefix, place, seconds):
        self.prefix = prefix
        self.place = place
        self.seconds = seconds
        self.bytes = 0

    def names(self, wanted):
        """Its sets of tests: it cannot list single tests."""
        return [name for name in ("unit", "functional", "short") if wanted in (None, name)]

    def run(self, names):
        address = self.place.address[4]
        for name in names:
            arguments = [self.prefix / "bin/runfabtests.sh", "-v", "-T", int(self.seconds), "-p", f"{self.prefix}/bin",
                         "-t", name, "-s", address, "-c", address, PROVIDER]
            with Process(self.place, arguments, name=f"runfabtests.sh {name}") as process:
                process.wait(3600)
                self.bytes += process.stats().get("tx_bytes", 0)
                outcomes = parse_results(process.stdout)
                if not outcomes:
                    raise Failure(f"it printed no result\n{process.evidence()}")
            yield from outcomes
