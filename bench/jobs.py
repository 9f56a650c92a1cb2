#!/usr/bin/env python3
"""jobs: what a collective costs `verbena sim`. A ring allreduce of neighbours on a fat-tree of 400 Gb/s, whose switches never
pause, with one GPU a host, runs twice by turns: as a collective, and as a list of flows that wait for each other (htsim's .cm,
with a trigger for each message). Both move the same packets, and the ratio of their CPU times says what the collective costs.
The ratio grows with the size, because what a list's flow costs beyond its packets weighs less then. Beside them an all-to-all of
as many ranks says how much memory it takes. Steps of training run by flows, one with its check by packets, and one by packets.
Each figure is the median of the rounds. A figure that misses what is wanted of it is
named at the end, and makes the exit status 1.

    make bench-jobs                                       # 16 MB of 1,024 hosts, and steps: about ten minutes
    make bench-jobs ARGS="--bytes 256MB --rounds 1"       # longer: some ten minutes
    make bench-jobs ARGS="--only ring --hosts 128 --bytes 2MB"
"""

import argparse
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from figures import Figures

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCENARIO = ROOT / "examples/permutation-1024.yaml"  # the network; its workload is replaced
PATIENCE = 3600
UNITS = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
A_PAIR = 65536  # bytes that a rank of the all-to-all sends to each other one
SAME = ("data_packets", "payload_bytes", "flows_done")
ACKS_APART = 0.01  # share of packet-hops: an ack that waits for the wire may answer for a later packet, too
ROWS = ("ring", "alltoall", "steps")
STEPS = {  # example: further words, and what is wanted: seconds of CPU time, MB
    "llama3-70b-1024": (["--no-check"], {"cpu": 30}),
    "llama3-405b-16384": (["--no-check"], {"cpu": 300, "memory": 2000}),
    "deepseek-v3-2048": (["--no-check"], {"cpu": 300}),
    "gpt13b-128": ([], {"cpu": 600}),
}
CHECKED = "llama3-70b-1024"
CHECK_CPU = 1200
STEP_ERROR, PHASE_ERROR = 0.03, 0.05


class Failure(Exception):
    pass


def size_of(text):
    match = re.fullmatch(r"(\d+)([A-Za-z]*)", text)
    if not match or match[2] not in UNITS:
        raise argparse.ArgumentTypeError(f"{text} is no size, such as 16MB")
    return int(match[1]) * UNITS[match[2]]


def radix_for(hosts):
    """Of the smallest fat-tree with so many hosts, and at least the scenario's."""
    radix = 16
    while radix**3 // 4 < hosts:
        radix += 2
    return radix


def neighbours(hosts, size):
    """The ring's messages, as lines of htsim's .cm: step s of a rank begins when that of step s - 1 has come from the rank before."""
    steps = 2 * (hosts - 1)
    yield f"Nodes {hosts}\nConnections {hosts * steps}\nTriggers {hosts * (steps - 1)}\n"
    for step in range(steps):
        for rank in range(hosts):
            message = step * hosts + rank + 1
            begins = f"trigger {message - hosts - 1 if rank else message - 1}" if step else "start 0"
            fires = f" recv_done_trigger {message}" if step < steps - 1 else ""
            yield f"{rank}->{(rank + 1) % hosts} id {message} {begins} size {size // hosts}{fires}\n"
    for trigger in range(1, hosts * (steps - 1) + 1):
        yield f"trigger id {trigger} oneshot\n"


def without_flows(file):
    """The object of --json, whose flows come last. Those of a list are millions of lines, and nobody needs them here."""
    head = []
    for line in file:
        if line.startswith('  "flows": ['):
            break
        head.append(line)
    return json.loads("".join(head).rstrip().rstrip(",") + "}")


def simulate(options, *words):
    command = [f"{options.build}/verbena", "sim", str(SCENARIO), "--json", "--no-progress",
               "--set", f"network.radix={radix_for(options.hosts)}", *words]
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(command, text=True, stdout=output, stderr=subprocess.PIPE, timeout=PATIENCE)
        if done.returncode:
            raise Failure(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr.strip()[-300:]}")
        output.seek(0)
        return without_flows(output)


def collective(options, kind, algorithm, size):
    settings = {"kind": kind, "algorithm": algorithm, "bytes": size, "endpoints": options.hosts}
    return simulate(options, *(word for key, value in settings.items() for word in ("--set", f"workload.{key}={value}")))


def add_run(figures, key, title, result, **wanted):
    figures.add(f"{key}/cpu", result["cpu_s"], f"{title}: CPU time", "s")
    figures.add(f"{key}/setup", result["setup_cpu_s"], f"{title}: before that, to read and set up", "s")
    figures.add(f"{key}/memory", result["max_rss_bytes"] / 1e6, f"{title}: memory", "MB", **wanted)
    figures.add(f"{key}/hops", result["packet_hops"] / 1e6, f"{title}: packet-hops", "M")
    figures.add(f"{key}/speed", result["packet_hops_per_cpu_s"] / 1e6, f"{title}: packet-hops", "M/s")
    figures.add(f"{key}/ends", result["jct_ps"] / 1e6, f"{title}: it ends at", "us")


def check_alike(ours, theirs):
    for key in SAME:
        if ours[key] != theirs[key]:
            raise Failure(f"ring: {key} is {ours[key]} of the collective and {theirs[key]} of the list, and should be the same")
    hops = ours["packet_hops"] / theirs["packet_hops"]
    if abs(hops - 1) > ACKS_APART:
        raise Failure(f"ring: the collective has {hops:.3f} times the packet-hops of the list, and should have as many")


def run_ring(figures, options, path, is_first):
    """is_first: whether the collective goes first."""
    runs = {"collective": lambda: collective(options, "allreduce", "ring", options.bytes),
            "list": lambda: simulate(options, "--flows", str(path))}
    results = {}
    for name in ("collective", "list") if is_first else ("list", "collective"):
        print(f"  ring, {name}", file=sys.stderr, flush=True)
        results[name] = runs[name]()
    ours, theirs = results["collective"], results["list"]
    check_alike(ours, theirs)
    add_run(figures, "ring/collective", "ring, collective", ours)
    add_run(figures, "ring/list", "ring, list", theirs)
    figures.add("ring/ratio", ours["cpu_s"] / theirs["cpu_s"], "ring, collective / list: CPU time", "", at_most=1.05)
    figures.add("ring/memory-ratio", ours["max_rss_bytes"] / theirs["max_rss_bytes"], "ring, collective / list: memory", "")


def run_alltoall(figures, options):
    print("  alltoall", file=sys.stderr, flush=True)
    add_run(figures, "alltoall", "all-to-all, 64 KiB a pair", collective(options, "alltoall", "pairwise", A_PAIR * options.hosts),
            at_most=400)


# ---- Steps of training ------------------------------------------------------------------------------------------------


def run_step(options, example, words):
    """(result, seconds of CPU time, MB), of a process of its own."""
    command = [f"{options.build}/verbena", "sim", str(ROOT / f"examples/{example}.yaml"), "--json", "--no-progress", *words]
    print(f"  {example} {' '.join(words)}", file=sys.stderr, flush=True)
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, text=True, stdout=output)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise Failure(f"{' '.join(command)}: exit status {os.waitstatus_to_exitcode(status)}")
        output.seek(0)
        return json.load(output), used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6


def run_steps(figures, options):
    for example, (words, wanted) in STEPS.items():
        result, cpu, memory = run_step(options, example, words)
        step = result["steps"][0]
        title = f"{example}, by {step['mode']}"
        figures.add(f"{example}/cpu", cpu, f"{title}: CPU time", "s", at_most=wanted["cpu"])
        figures.add(f"{example}/memory", memory, f"{title}: memory, and at least this program's", "MB", at_most=wanted.get("memory"))
        figures.add(f"{example}/step", step["step"]["time_ps"] / 1e9, f"{title}: the step", "ms")
    result, cpu, _ = run_step(options, CHECKED, [])
    error = result["steps"][0]["error"]
    figures.add("check/cpu", cpu, f"{CHECKED} with its check: CPU time", "s", at_most=CHECK_CPU)
    figures.add("check/step", abs(error["step"]), f"{CHECKED}: error of the step", "", at_most=STEP_ERROR)
    figures.add("check/phase", abs(error["worst_phase"]["error"]), f"{CHECKED}: error of {error['worst_phase']['name']}", "",
                at_most=PHASE_ERROR)


# ---- All --------------------------------------------------------------------------------------------------------------


def run_rounds(figures, options):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "ring.cm"
        if "ring" in options.only:
            with open(path, "w") as file:
                file.writelines(neighbours(options.hosts, options.bytes))
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
            if "ring" in options.only:
                run_ring(figures, options, path, number % 2 == 0)
            if "alltoall" in options.only and number == 0:
                run_alltoall(figures, options)  # once: memory is the same each time
            if "steps" in options.only and number == 0:
                run_steps(figures, options)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--hosts", type=int, default=1024, help="of the ring, and of the all-to-all")
    parser.add_argument("--bytes", type=size_of, default=size_of("16MB"), help="of the allreduce, as 256MB (default 16MB)")
    parser.add_argument("--only", metavar="ROW", action="append", choices=ROWS, help="ring, alltoall or steps")
    parser.add_argument("--json", metavar="FILE", help="also write all values to FILE")
    options = parser.parse_args()
    options.only = options.only or ROWS
    if options.hosts < 2 or options.rounds < 1:
        parser.error("a ring needs two hosts, and the figures a round")
    if options.bytes == 0 or options.bytes % options.hosts:
        parser.error(f"{options.bytes} bytes are not so many whole shares of {options.hosts} hosts")
    return options


def main():
    options = read_options()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}, "
          f"load {os.getloadavg()[0]:.1f}; {options.hosts} hosts, allreduce of {options.bytes / 1e6:g} MB; median of {options.rounds}")
    figures = Figures()
    failures = []
    try:
        run_rounds(figures, options)
    except (Failure, OSError, subprocess.TimeoutExpired) as failure:
        failures.append(str(failure))
    return figures.conclude(failures, options.json)


if __name__ == "__main__":
    sys.exit(main())
