"""What stands still in lossless and in lossy networks: the livelock of go-back-0 (Guo et al., SIGCOMM 2016, 4.1) and the deadlock of
pauses in a cycle (the same, 4.2; Hu et al., HotNets 2016)."""

import pathlib
import subprocess
import tempfile

from figure import Figure

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def livelock(place):
    """Messages of 4 MB, each 256th packet lost: by SEND, WRITE and READ what a test of two engines prints, and a whole run."""
    printed = subprocess.run([place.build / "tests/unit/fabric/livelock_test"], text=True, timeout=120, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, check=True).stdout
    for line in printed.splitlines():
        verb, recovery, share, _, beside = (line.split() + [""] * 5)[:5]
        if recovery == "go-back-0":
            yield Figure(f"{verb}, go-back-0: messages get", 0, float(share), 0, "of the link")
            yield Figure(f"{verb}, go-back-0: busy", 1, float(beside), 0.01, "of the link")
        elif recovery == "go-back-n":
            yield Figure(f"{verb}, go-back-N, by law", float(beside), float(share), 0.01, "of the link")
    for recovery, end, flows in (("go-back-0", "limit", 0), ("go-back-n", "done", 1)):
        run = place.simulate(ROOT / "examples/livelock.yaml", f"transport.recovery={recovery}", end=end)
        yield Figure(f"simulated, {recovery}: messages that end, of 1", flows, run["flows_done"], 0)


def deadlock(place):
    """Five switches in a ring, each of whose packets go two links on in the same sense."""
    ring = ROOT / "examples/ring.yaml"
    stuck = place.simulate(ring, "network.switch.watchdog=0", end="deadlock")
    yield Figure("ports that wait for each other", 5, len(stuck["cycle"]), 0)
    yield Figure("packets lost by that", 0, stuck["drops"], 0)
    freed = place.simulate(ring)
    yield Figure("flows that end with a watchdog, of 5", 5, freed["flows_done"], 0)
    yield Figure("what it costs: packets of a lossless class", freed["lossless_drops"], freed["lossless_drops"], None)
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as flows:
        flows.write("".join((ROOT / "examples/ring_flows.csv").open().readlines()[:-1]))
        flows.flush()
        chain = place.simulate(ring, "network.switch.watchdog=0", flows=flows.name)
    yield Figure("flows that end without the fifth, of 4", 4, chain["flows_done"], 0)
    yield Figure("packets lost then", 0, chain["drops"], 0)
