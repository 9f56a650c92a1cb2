"""HPCC's micro-benchmarks (Li et al., SIGCOMM 2019, 5.2), over the tree of 320 hosts: what a short flow costs a long one, how long
mice wait behind elephants, what an incast onto a busy link leaves in its queue, and four flows that come and go. The paper has
curves and no figures for them, so ours are held against laws, where there is one, and told for the others beside."""

import pathlib
import tempfile

from figure import Figure, percentile

SCENARIO = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/hpcc-fattree320.yaml"
OTHERS = ("dcqcn", "dcqcn_vwin", "timely")
TARGET, LONG, SHORT = 319, 0, 20
MS = 1_000_000
HEADERS = {"hpcc": 90, "timely": 56}  # bytes of a packet beside its 1,000 of payload
DEFAULT_HEADERS = 48
USED = {"hpcc": 0.95}  # what it leaves of a link is a parameter
ROUND_TRIP = 12.6  # us
# HPCC adds for five round trips (its maxStage), and takes what another has left in the sixth: the link rests for as much at most.
BEFORE_TAKING = 6 * ROUND_TRIP


def completions(place, cc, flows, *settings):
    """Each flow (from, bytes, start in ns) to the same host: when it ended, us after the first began; and the run."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write("src,dst,bytes,start_ns\n" + "".join(f"{source},{TARGET},{size},{start}\n" for source, size, start in flows))
        file.flush()
        run = place.simulate(SCENARIO, *settings, flows=file.name, cc=cc)
    return [flow["fct_ps"] / 1e6 + start / 1e3 for flow, (_, _, start) in zip(run["flows"], flows)], run


def on_the_wire(cc, payload):
    """us at 100 Gb/s, of which the congestion control uses its share."""
    return payload * (1 + HEADERS.get(cc, DEFAULT_HEADERS) / 1000) * 8 / 100e3 / USED.get(cc, 1)


def short_behind_long(place):
    """The link has 1 MB more to carry, and never rests: what is beyond is time in which half of it did."""
    for cc in ("hpcc", *OTHERS):
        (alone,), _ = completions(place, cc, [(LONG, 50_000_000, 0)])
        (beside, _), _ = completions(place, cc, [(LONG, 50_000_000, 0), (SHORT, 1_000_000, MS)])
        law = on_the_wire(cc, 1_000_000)
        yield Figure(f"{cc}: the long one ends later by", law, beside - alone, BEFORE_TAKING / 2 / law if cc == "hpcc" else None, "us")


def mice_behind_elephants(place):
    """Beside mice alone. HPCC's empty queue may hold ten packets."""
    mice = [(40, 1000, 2 * MS + i * 20_000) for i in range(150)]

    def late(cc, *elephants):
        ends, _ = completions(place, cc, [*elephants, *mice])
        return percentile([end - start / 1e3 for end, (_, _, start) in zip(ends[len(elephants):], mice)], 0.99)

    for cc in ("hpcc", *OTHERS):
        alone, beside = late(cc), late(cc, (LONG, 70_000_000, 0), (SHORT, 70_000_000, 0))
        yield Figure(f"{cc}: 1 kB, p99, beside alone", alone, beside, 10 * on_the_wire(cc, 1000) / alone if cc == "hpcc" else None, "us")


def incast_onto_a_long_flow(place):
    """Nobody is paused, and the last byte comes when the link has carried all."""
    for senders in (7, 16):
        flows = [(LONG, 20_000_000, 0)] + [((i + 1) * 16, 500_000, 300_000) for i in range(senders)]
        for cc in ("hpcc", *OTHERS):
            ends, run = completions(place, cc, flows)
            law = on_the_wire(cc, 20_000_000 + senders * 500_000) + ROUND_TRIP / 2
            yield Figure(f"{cc}: {senders}:1, last", law, max(ends), BEFORE_TAKING / law if cc == "hpcc" else None, "us")
            yield Figure(f"{cc}: {senders}:1, PAUSE frames", 0, run["pauses"], 0 if cc == "hpcc" else None)


def four_come_and_go(place):
    """One more every 10 ms, then one less, had each its share at once."""
    for cc in ("hpcc", "dcqcn_vwin"):
        stage = 10_000 / on_the_wire(cc, 1)
        parts = [1 + 1 / 2 + 1 / 3 + 1 / 4, 1 / 2 + 1 / 3 + 1 / 4 + 1 / 3, 1 / 3 + 1 / 4 + 1 / 3 + 1 / 2, 1 / 4 + 1 / 3 + 1 / 2 + 1]
        flows = [(20 * i, int(part * stage) // 1000 * 1000, i * 10 * MS) for i, part in enumerate(parts)]
        ends, _ = completions(place, cc, flows)
        for i, end in enumerate(ends):
            yield Figure(f"{cc}: flow {i + 1} ends at", (4 + i) * 10_000, end, None, "us")
        yield Figure(f"{cc}: all is carried at", 70_000, max(ends), 0.02, "us")
