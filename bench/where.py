"""Where a packet-hop's nanoseconds go: by differences of runs, with and without engines, with many and with few
acknowledgements; and by samples of perf's cpu-clock, or where there is none by instructions of valgrind's callgrind."""

import collections
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

SPARSE = 16  # packets for an acknowledgement, where there are few
KINDS = ("engine", "ideal")

# Files of a function by room; the first group that names it, or its room, has it.
GROUPS = (
    ("queue of events", {"fabric/events", "fabric/windows"}),
    ("links and switches", {"fabric/" + name for name in (
        "links", "prefetch", "packets", "faults", "switches", "port", "buffer", "pfc", "credits", "deadlock")} | {"net/route"}),
    ("wires and flows of endpoints", {"fabric", "net"}),
    ("engine, requester", {"roce/requester", "roce/turn", "roce/batch", "roce/flight", "engine/scheduler",
                           "core/send_queue", "core/requests", "core/doorbells", "core/handed_out"}),
    ("engine, responder", {"roce/responder", "roce/receive", "core/responder", "core/execute", "core/memory",
                           "core/memory_access", "core/memory_kinds", "core/keys", "core/scatter", "core/receive_work"}),
    ("engine, acknowledgements", {"roce/acknowledgement", "roce/recovery", "roce/responses", "roce/congestion",
                                  "core/retry", "cc"}),
    ("engine, lane and the rest", {"engine", "roce", "core", "local", "base", "wire"}),
)
ELSEWHERE = "beginning, end, libc and kernel"


# ---- Differences ------------------------------------------------------------------------------------------------------

# What a run cost (of whatever unit) for each data packet, and how many acknowledgements came with one.
Run = collections.namedtuple("Run", "cost acks")


def straight_line(dense, sparse):
    """A data packet without acknowledgements, and what one of these adds: from two runs."""
    ack = (dense.cost - sparse.cost) / (dense.acks - sparse.acks)
    return sparse.cost - ack * sparse.acks, ack


def split(runs):
    """runs: by (kind, is_sparse). Of a data packet that is acknowledged as in the dense run: what goes where."""
    data, ack = straight_line(runs["engine", False], runs["engine", True])
    floor_data, floor_ack = straight_line(runs["ideal", False], runs["ideal", True])
    acks = runs["engine", False].acks
    return {"floor (queue, links, switches), data": floor_data, "floor, acknowledgements": floor_ack * acks,
            "engine, data": data - floor_data, "engine, acknowledgements": (ack - floor_ack) * acks}


def settings_of(kind, is_sparse):
    return (f"transport.endpoint={kind}", f"transport.ack-every={SPARSE if is_sparse else 1}")


def cheapest(results):
    """What else goes on on a machine only ever adds."""
    return Run(min(result["cpu_s"] * 1e9 / result["data_packets"] for result in results),
               results[0]["acks"] / results[0]["data_packets"])


def table(title, parts, hops, unit):
    """Lines. parts: of a data packet, which takes so many hops with its acknowledgements."""
    yield f"{title}: {sum(parts.values()) / hops:.1f} {unit} a hop"
    for name, value in parts.items():
        yield f"  {name:38} {value / hops:8.1f} {unit} {100 * value / sum(parts.values()):6.1f}%"


def by_differences(simulate, example, rounds):
    """simulate(example, settings): a result. The four kinds of run take turns."""
    results = collections.defaultdict(list)
    for _ in range(rounds):
        for kind in KINDS:
            for is_sparse in (False, True):
                results[kind, is_sparse].append(simulate(example, settings_of(kind, is_sparse)))
    first = results["engine", False][0]
    return table(f"by differences of CPU time, of the smallest of {rounds} each",
                 split({key: cheapest(of) for key, of in results.items()}), first["packet_hops"] / first["data_packets"], "ns")


# ---- Samples ----------------------------------------------------------------------------------------------------------

def functions(build):
    """File ("fabric/links") by the name of each function that is in one file alone, from the objects of the rooms. Not by nm: link-time
    optimisation hides static ones from it."""
    files, twice = {}, set()
    for room in ("fabric", "net", "engine", "roce", "core", "local", "cc", "base", "wire"):
        for path in pathlib.Path(build, "src", room).glob("*.p/*.c.o"):
            said = subprocess.run(["readelf", "-sW", path], check=True, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL).stdout
            file = f"{room}/{path.name.removesuffix('.c.o')}"
            for name in re.findall(r" FUNC .* (\S+)$", said, re.M):
                if files.setdefault(name, file) != file:
                    twice.add(name)
    return {name: file for name, file in files.items() if name not in twice}


def group_of(file):
    """file: None where it is not known."""
    for name, members in GROUPS:
        if file and (file in members or file.split("/")[0] in members):
            return name
    return ELSEWHERE


def shares(names, files):
    """Of each group, in its order, from the names of functions that were sampled."""
    counts = collections.Counter(group_of(files.get(name)) for name in names)
    return {group: counts[group] / max(len(names), 1) for group in [name for name, _ in GROUPS] + [ELSEWHERE]}


def sample(command):
    """The result of a run, and the functions that it was seen in."""
    with tempfile.TemporaryDirectory() as place:
        record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "4999", "-o", f"{place}/data", "--"]
        result = json.loads(subprocess.run(record + command, check=True, text=True, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE).stdout)
        said = subprocess.run(["perf", "script", "-i", f"{place}/data", "-F", "ip,sym"], check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout
    return result, re.findall(r"^ *[0-9a-f]+ (\S+)", said, re.M)


def by_samples(command_of, example, build):
    """Lines; raises OSError or CalledProcessError where there is no perf, or it may not sample."""
    files, columns = functions(build), []
    for kind in KINDS:
        result, names = sample(command_of(example, settings_of(kind, False)))
        hop = result["cpu_s"] * 1e9 / result["packet_hops"]
        columns.append((hop, shares(names, files), len(names)))
    yield (f"by samples of perf, {columns[0][2]} and {columns[1][2]}; ns a hop{'':9} "
           f"engines {columns[0][0]:.1f}   no engines (not RoCE) {columns[1][0]:.1f}")
    for group in columns[0][1]:
        yield f"  {group:38} " + "".join(f"{hop * part[group]:12.1f} {100 * part[group]:5.1f}%" for hop, part, _ in columns)


def instructions(command):
    with tempfile.TemporaryDirectory() as place:
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={place}/out", "-q"]
        done = subprocess.run(tool + command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        total = re.search(r"^(?:summary|totals): (\d+)", pathlib.Path(place, "out").read_text(encoding="utf-8"), re.M)
    return {**json.loads(done.stdout), "instructions": int(total[1])}


def by_instructions(command_of, example):
    """As by differences, of shorter flows, with what opening takes taken away by flows that are shorter still."""
    runs, hops = {}, 0
    for kind in KINDS:
        for is_sparse in (False, True):
            long, short = (instructions(command_of(example, settings_of(kind, is_sparse) + (f"workload.bytes={size}kB",)))
                           for size in (262, 131))
            packets = long["data_packets"] - short["data_packets"]
            runs[kind, is_sparse] = Run((long["instructions"] - short["instructions"]) / packets,
                                        (long["acks"] - short["acks"]) / packets)
            hops = hops or (long["packet_hops"] - short["packet_hops"]) / packets
    return table("by differences of instructions, of shorter flows", split(runs), hops, "instructions")


def by_tool(command_of, example, build):
    """Lines."""
    try:
        return list(by_samples(command_of, example, build))
    except (OSError, subprocess.CalledProcessError) as error:
        said = [f"no samples: perf is not there, or may not ({error})"]
    if shutil.which("valgrind"):
        return said + list(by_instructions(command_of, example))
    return said + ["no instruction counts: valgrind is not there"]
