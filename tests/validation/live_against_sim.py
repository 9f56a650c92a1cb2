#!/usr/bin/env python3
"""live_against_sim: the same engine, the same bottleneck, twice: live, by ib_send_bw between two network namespaces over veth with
VERBENA_FAULTS, and by `verbena sim` of a scenario that is made of the same row of a table. Goodput and mean queue of both, side by
side, as medians; docs/fabric-validation.md says what the misses mean. The exit status is 1 when a row misses.

    make validate-live                                    # all of it, some minutes; wants to make network namespaces
    make validate-live ARGS="--list"
    make validate-live ARGS="--only '*lost*' --runs 9 --json FILE"
"""

import argparse
import collections
import fnmatch
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/conformance"))
sys.dont_write_bytecode = True

import places
import programs
from process import Failure, Process, finish

TOLERANCE = 0.05
DISTURBED = 0.02  # share of the time that a machine may stand still; runs with more are done again
MESSAGE = 2 << 20  # so large that their ends, which ask for acknowledgements, are no matter
VETH, MTU = 9000, 4096
OVERHEAD = {"data": 20 + 8 + 12 + 4, "ack": 20 + 8 + 12 + 4 + 4}  # what a bottleneck of IP packets counts of one

# marks: kmin, kmax and pmax in percent. messages: of each flow, as many as take some seconds. known: which figure may miss, as the
# document has it; that is told, and not judged.
Row = collections.namedtuple("Row", "name messages cc loss queue marks flows rate_mb delay_ms known")
DCQCN = ("dcqcn, line-rate=100Mb/s, rai=1Mb/s, min-rate=1Mb/s, increase-time=2ms, alpha-time=2ms, decrease-time=2ms, g=0.0625")
DCTCP = "dctcp, rtt=1ms"


def row(name, messages, cc="window", loss=0, queue=1_000_000, marks=None, flows=1, rate_mb=200, delay_ms=5, known=None):
    return Row(name, messages, cc, loss, queue, marks, flows, rate_mb, delay_ms, known)


ROWS = [
    row("no loss", 160, queue=500_000),
    row("no loss, a short queue", 120, queue=200_000),
    row("0.1% lost, two flows", 60, loss=0.1, flows=2, queue=150_000),
    row("0.1% lost, four flows", 40, loss=0.1, flows=4, queue=150_000, known="goodput"),
    row("1% lost, four flows", 60, loss=1, flows=4, queue=150_000),
    row("1% lost, eight flows", 20, loss=1, flows=8, queue=150_000),
    row("marks, dcqcn, two flows", 30, cc=DCQCN, marks=(50_000, 400_000, 10), rate_mb=100, flows=2),
    row("marks, dcqcn, one flow", 80, cc=DCQCN, marks=(50_000, 400_000, 10), rate_mb=100, known="queue"),
    row("marks, dctcp", 80, cc=DCTCP, marks=(50_000, 400_000, 10)),
]


class Figures(collections.namedtuple("Figures", "goodput queue more")):
    """Bits a second; bytes; what else is told of a run."""


# ---- The machine --------------------------------------------------------------------------------------------------------

class Watch:
    """Sleeps for a millisecond again and again on each core, and counts how much longer that took than another: for so long nobody
    ran who wanted to. A share of the time."""

    def __init__(self):
        self._late, self._is_over = [0.0] * os.cpu_count(), False
        self._threads = [threading.Thread(target=self._look, args=(core,)) for core in range(os.cpu_count())]

    def _look(self, core):
        os.sched_setaffinity(threading.get_native_id(), {core})
        while not self._is_over:
            before = time.monotonic()
            time.sleep(0.001)
            self._late[core] += max(0.0, time.monotonic() - before - 0.002)

    def __enter__(self):
        self._began = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._is_over = True
        for thread in self._threads:
            thread.join()
        self.stood_still = max(self._late) / (time.monotonic() - self._began)


# ---- Live ---------------------------------------------------------------------------------------------------------------

def faults_of(row, seed):
    """Of server and client. What is lost is lost both ways; all of the delay is on the way there."""
    lost = f"drop={row.loss}%,seed={seed}" if row.loss else ""
    neck = f"rate={row.rate_mb}Mb/s,queue={row.queue},delay={row.delay_ms}ms"
    if row.marks:
        neck += ",kmin={},kmax={},pmax={}%".format(*row.marks)
    return neck + ("," + lost if lost else f",seed={seed}"), lost


def pair(path, program, *options, server, client):
    """Both ended well. server, client: their settings."""
    port = programs.next_port()

    def command(place, *more):
        return [program, "-d", place.device, "-x", str(place.gid_index(4)), "-p", str(port), "-F", "-e", "-m", str(MTU),
                *map(str, options), *more]

    with Process(path.server, command(path.server), settings=server, name="server") as one:
        one.wait_listening(port)
        with Process(path.client, command(path.client, path.server.address[4]), settings=client, name="client") as other:
            finish([one, other], 200)
    return one, other


def host_latency(path, row):
    """What processes, and who wakes them, add to a round trip, seconds: by ib_send_lat's, asleep as ib_send_bw is."""
    neck = {"VERBENA_FAULTS": f"rate={row.rate_mb}Mb/s,delay={row.delay_ms}ms"}
    _, client = pair(path, "ib_send_lat", "-s", MTU, "-n", 200, server=neck, client={"VERBENA_LOCAL": "off"})
    typical = re.search(rf"^\s*{MTU}\s+\d+\s+[\d.]+\s+[\d.]+\s+([\d.]+)", client.stdout, re.M)
    return 2e-6 * float(typical[1]) - row.delay_ms * 1e-3 - (MTU + OVERHEAD["data"]) * 8 / (row.rate_mb * 1e6)


def run_live(path, row, seed, keep=None):
    theirs, own = faults_of(row, seed)

    def settings(faults, side):
        capture = {"VERBENA_PCAP": f"{keep}.{side}.pcap"} if keep else {}
        return {"VERBENA_CC": row.cc.replace(" ", ""), **({"VERBENA_FAULTS": faults} if faults else {}), **capture}

    latency = host_latency(path, row)
    began, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with Watch() as watch:
        server, client = pair(path, "ib_send_bw", "-N", "-s", MESSAGE, "-n", row.messages, "-t", 32, "-r", 32, "-q", row.flows,
                              server=settings(theirs, "server"), client=settings(own, "client"))
    after, lasted = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began
    found = re.search(rf"^\s*{MESSAGE}\s+\d+\s+[\d.]+\s+([\d.]+)", client.stdout, re.M)
    if not found:
        raise Failure(f"no figure of ib_send_bw\n{client.evidence()}")
    theirs, ours = server.stats(), client.stats()
    cpu = (after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime) / lasted
    more = {"cpu": cpu, "stood_still": watch.stood_still, "host_latency": latency, "drops": theirs.get("port_bottleneck_drops", 0), "marks": theirs.get("port_bottleneck_marks", 0),
            "packets": theirs.get("port_rx_segments", 0), "resent": ours.get("retransmitted", 0),
            "timeouts": ours.get("timeouts", 0), "probes": ours.get("probes", 0),
            "stats": {"server": theirs, "client": ours}}
    return Figures(float(found[1]) * (1 << 20) * 8, theirs.get("port_bottleneck_mean_bytes", 0), more)


def runs_live(path, row, options, keep):
    """As many as are wanted; those of which the machine stood still for long are replaced by others, each once."""
    done = []
    while len([run for run in done if run.more["stood_still"] <= DISTURBED]) < options.runs and len(done) < 2 * options.runs:
        done.append(run_live(path, row, len(done) + 1, keep(len(done))))
    return sorted(done, key=lambda run: run.more["stood_still"])[:options.runs]


# ---- Simulated ----------------------------------------------------------------------------------------------------------

def scenario_of(row, latency):
    """latency: of both hosts, in a round trip, seconds."""
    lines = f"""
network:
  topology: dumbbell
  endpoints: 2
  host-rate: 100G
  host-delay: 0us
  fabric-rate: {row.rate_mb}Mb/s
  fabric-delay: {row.delay_ms * 500}us
  switch:
    profile: ideal
    flow-control: drops
    port-buffer: {row.queue}
"""
    nic = f"  nic:\n    wake-latency: {round(latency * 1e9 / 2)}ns\n"
    if row.marks:
        lines += """    marks: coming
    mark-rate: {}Mb/s
    classes:
      all: {{mark-min: {}, mark-max: {}, mark-chance: {}%}}
""".format(row.rate_mb, *row.marks)
    lines += nic
    if row.loss:
        lines += f"  faults:\n    - {{link: endpoint 0, loss: {row.loss}%}}\n"
    lines += f"""transport:
  behind: sockets
  cc: "{row.cc}"
  mtu: {MTU}
  data-overhead: {OVERHEAD["data"]}
  ack-overhead: {OVERHEAD["ack"]}
  timeout: 67109us
workload:
"""
    lines += f"  - {{kind: incast, senders: 1, target: 1, bytes: {MESSAGE * row.messages}}}\n" * row.flows
    return lines + "run: {mean-queues: yes}\n"


def run_simulated(build, row, latency, seed, keep=None):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(scenario_of(row, latency))
        file.flush()
        command = [build / "src/cli/verbena", "sim", file.name, "--json", "--no-progress", "--seed", str(seed)]
        if keep:
            command += ["--pcap", f"{keep}.pcapng", "--capture", "endpoint 1 down", "--capture", "endpoint 0 up"]
        done = subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
    if done.returncode or not done.stdout:
        raise Failure(f"verbena sim: status {done.returncode}\n{done.stderr}{scenario_of(row, latency)}")
    result = json.loads(done.stdout)
    neck = max(result["busiest_links"], key=lambda link: link["load"])
    seconds = max(flow["fct_ps"] for flow in result["flows"]) / 1e12
    more = {"drops": neck["drops"], "marks": result["marked_packets"], "packets": result["data_packets"],
            "resent": result["resent_packets"], "timeouts": result["timeouts"], "warnings": result["warnings"]}
    return Figures(MESSAGE * row.messages * row.flows * 8 / seconds, neck["mean_queued_bytes"], more)


# ---- The table ----------------------------------------------------------------------------------------------------------

def median(runs, field):
    return statistics.median(getattr(run, field) for run in runs)


def compare(row, live, simulated):
    """A line each of goodput and queue; did both agree?"""
    lines, agrees = [], True
    for field, unit, scale in (("goodput", "Mb/s", 1e6), ("queue", "kB", 1e3)):
        there, here = median(live, field) / scale, median(simulated, field) / scale
        off = here / there - 1 if there else float("inf")
        spread = [f"{min(getattr(run, field) for run in runs) / scale:.1f} to {max(getattr(run, field) for run in runs) / scale:.1f}"
                  for runs in (live, simulated)]
        is_near = abs(off) <= TOLERANCE
        agrees &= is_near or field == row.known
        lines.append(f"| {row.name} | {field} | {there:.1f} {unit} ({spread[0]}) | {here:.1f} {unit} ({spread[1]}) | {off:+.1%} | "
                     f"{'ok' if is_near else 'known' if field == row.known else 'MISS'} |")
    return lines, agrees


def tell_more(live, simulated):
    of = lambda runs, name: statistics.median(run.more[name] for run in runs)
    said = ", ".join(f"{name} {of(live, name):.0f} / {of(simulated, name):.0f}"
                     for name in ("packets", "resent", "drops", "marks", "timeouts"))
    each = lambda name, scale: " ".join(f"{run.more[name] * scale:.2f}" for run in live)
    return f"    {said}; live {of(live, 'cpu'):.2f} cores busy; it stood still for {each('stood_still', 100)} %; hosts take " \
           f"{each('host_latency', 1e6)} us; goodput {' '.join(f'{run.goodput / 1e6:.1f}' for run in live)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", action="append", metavar="ROW", help="names, or patterns as 'marks*'")
    parser.add_argument("--runs", type=int, default=5, help="live (%(default)s)")
    parser.add_argument("--seeds", type=int, default=21, help="simulated (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="all figures of all runs")
    parser.add_argument("--keep", metavar="NAME", help="captures of the first run of each, NAME.ROW.*")
    parser.add_argument("--verbose", action="store_true", help="packets, drops, marks, timeouts too: live / simulated")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    rows = [row for row in ROWS if not options.only or any(fnmatch.fnmatch(row.name, only) for only in options.only)]
    if options.list:
        for each in rows:
            print(f"{each.name:24} {each}")
        return 0
    missed, told = [], {}
    world = places.World(str(options.build.resolve() / "verbena"))
    try:
        path = world.open(f"veth{VETH}")
        if path is None:
            print(f"it cannot be run here: {world.unavailable[f'veth{VETH}']}")
            return 1
        print("| run | figure | live | simulated | simulated against live | verdict |\n|---|---|---|---|---|---|")
        for number, each in enumerate(rows):
            keep = lambda index: f"{options.keep}.{number}" if options.keep and index == 0 else None
            live = runs_live(path, each, options, keep)
            latency = statistics.median(run.more["host_latency"] for run in live)
            simulated = [run_simulated(options.build.resolve(), each, latency, index + 1, keep(index))
                         for index in range(options.seeds)]
            lines, agrees = compare(each, live, simulated)
            print("\n".join(lines + ([tell_more(live, simulated)] if options.verbose else [])), flush=True)
            told[each.name] = {"live": [run._asdict() for run in live], "simulated": [run._asdict() for run in simulated]}
            if not agrees:
                missed.append(each.name)
    finally:
        world.close()
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(told, indent=1) + "\n")
    print(f"{len(rows) - len(missed)} agree, {len(missed)} do not" + (": " + ", ".join(missed) if missed else ""))
    return 1 if missed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
