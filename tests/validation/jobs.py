#!/usr/bin/env python3
"""jobs: collectives of `verbena sim`, a job under LogGOPS and steps of training (step_times.py), beside figures that others have
published. Each row is run, and printed with what is published, what came, how far they are apart, what is allowed, and the
verdict. A figure without an allowance is told, and not judged. The exit status is 1 when a row misses.

    make validate-jobs                                    # half a minute
    make validate-jobs ARGS="--list"
    make validate-jobs ARGS="--only 'simai/*' --simai DIRECTORY"

--simai names the directory with SimAI's topologies, as its gen_Topo_Template.py writes them:
Spectrum-X_256g_8gps_400Gbps_H100 and DCN+SingleToR_256g_8gps_400Gbps_H100. Without it the row of both is not run."""

import argparse
import fnmatch
import json
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from figure import Figure
import step_times
from golden import Absent, Failure, Row, measure_rows, off_by, verdict

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCENARIO = pathlib.Path(__file__).resolve().parent / "jobs.yaml"
PATIENCE = 3600
MIB = 2**20

# github.com/astra-sim/astra-sim at commit 518bd51, its HGX-H100-validated: a switch of 400 GB/s, a ring. GB/s: the domain's rate,
# which no collective can exceed, and the largest busbw of its validation page.
ASTRA_DOMAIN = 400
ASTRA_BUSBW = 370.67

# github.com/aliyun/SimAI at commit cef83f9, docs/Tutorial.md: busbw in GB/s by MiB. All are simulated there.
SIZES = (16, 32, 64, 128, 256, 512)
NVLS = dict(zip(SIZES, (148.88, 178.04, 197.38, 208.70, 214.87, 218.09)))
RING = dict(zip(SIZES, (141.84, 153.68, 160.60, 163.85, 165.72, 166.68)))
SPECTRUM_X = dict(zip(SIZES, (33.10, 38.57, 42.05, 44.04, 45.10, 45.65)))
DCN = dict(zip(SIZES, (23.33, 25.76, 23.68, 35.21, 36.21, 36.24)))
TOPOLOGIES = ("Spectrum-X_256g_8gps_400Gbps_H100", "DCN+SingleToR_256g_8gps_400Gbps_H100")

# github.com/spcl/LogGOPSim at commit 76451de, its README: each of 16 hosts ends at 22,000 ns, 4 (2 o + L).
LOGGOPS = "L=2500,o=1500,g=1000,G=6,O=0,S=65535"
DISSEMINATION = 22000


class Place:
    def __init__(self, build, simai, simai_size):
        self.verbena, self.simai, self.simai_size = build / "src/cli/verbena", simai, simai_size

    def run(self, *words):
        command = [str(word) for word in (self.verbena, "sim", *words, "--json", "--no-check")]
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
        if done.returncode or not done.stdout:
            raise Failure(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def rings(self, least, most, *settings, algorithm="ring"):
        """The scenario's allreduce of each size from least to most MiB, by MiB."""
        words = [word for setting in settings for word in ("--set", setting)]
        rows = self.run("--collective", "allreduce", "--algorithm", algorithm, "--sizes", f"{least}M..{most}M", SCENARIO, *words,
                        "--no-progress")
        return {row["bytes"] // MIB: row for row in rows}

    def busbw(self, *arguments, **algorithm):
        """In GB/s, by MiB."""
        return {size: row["busbw_gb_s"] for size, row in self.rings(*arguments, **algorithm).items()}

    def job(self, scenario, text, *settings):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            words = [word for setting in settings for word in ("--set", setting)]
            return self.run("--job", file.name, scenario, *words, "--no-progress")


# ---- A scale-up domain ------------------------------------------------------------------------------------------------

def astra_sim(place):
    ours = place.busbw(16, 4096, "variant=host")
    yield Figure("4 GiB, beside the domain's rate", ASTRA_DOMAIN, ours[4096], 0.01, "GB/s")
    yield Figure("4 GiB, beside theirs, which holds memory and endpoints, not modelled", ASTRA_BUSBW, ours[4096], None, "GB/s")
    yield Figure("16 MiB, beside the domain's rate", ASTRA_DOMAIN, ours[16], None, "GB/s")


def by_size(published, ours):
    """All sizes are told, and the largest is judged."""
    for size in SIZES:
        yield Figure(f"{size} MiB", published[size], ours[size], 0.1 if size == SIZES[-1] else None, "GB/s")


def tensor_parallel(place):
    yield from by_size(RING, place.busbw(SIZES[0], SIZES[-1], "variant=host", "hosts.scale-up=1440G", "hosts.scale-up-delay=2ns"))


def nvls(place):
    """Ours send S once each way and keep ports busy; theirs cut it into more messages. So none is judged."""
    ours = place.busbw(SIZES[0], SIZES[-1], "variant=host", "hosts.scale-up=1360G", "hosts.scale-up-delay=12ns", "hosts.reduces=yes",
                       algorithm="nvls")
    for size in SIZES:
        yield Figure(f"{size} MiB", NVLS[size], ours[size], None, "GB/s")


# ---- Data parallel, over the network ----------------------------------------------------------------------------------

def spectrum_x(place):
    """Rails have no switch in common there, so one of them is enough."""
    yield from by_size(SPECTRUM_X, place.busbw(SIZES[0], SIZES[-1]))


def data_parallel(size):
    """AICB's text: an allreduce of each of eight rails' 32 GPUs, of so many bytes."""
    return ("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 256 "
            f"checkpoints: 0 checkpoint_initiates: 0\n1\ngradients -1 0 NONE 0 0 NONE 0 0 ALLREDUCE {size} 0\n")


def busbw_of(job, size):
    return 2 * 31 / 32 * size / (job["jct_ps"] / 1000)


def eight_rails(place):
    """One rail is enough, because all eight take as long."""
    job = place.job(SCENARIO, data_parallel(16 * MIB), "variant=rails")
    yield Figure("16 MiB, eight rails beside one, both ours", place.rings(16, 16)[16]["time_ps"] / 1e6, job["jct_ps"] / 1e6, 0, "us")


def dcn(place):
    """Switches mark and pause, and senders have DCQCN, as in SimAI's configuration."""
    if not place.simai:
        raise Absent(f"not run: needs the topology file (--simai; theirs: {DCN[512]} / {SPECTRUM_X[512]} GB/s = "
                     f"{DCN[512] / SPECTRUM_X[512]:.2f} at 512 MiB)")
    size, ours = place.simai_size, []
    for name, published in zip(TOPOLOGIES, (SPECTRUM_X, DCN)):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as scenario:
            scenario.write(f'name: "{name}"\nnetwork:\n  file: "{(place.simai / name).resolve()}"\n'
                           "  switch: {profile: hpcc, buffer: 32MB}\ntransport: {cc: dcqcn, mtu: 4096}\n"
                           "workload:\n  - {kind: allreduce, algorithm: ring}\n")
            scenario.flush()
            ours.append(busbw_of(place.job(scenario.name, data_parallel(size * MIB)), size * MIB))
        yield Figure(f"{size} MiB, {name}", published[size], ours[-1], None, "GB/s")
    yield Figure(f"{size} MiB, DCN+ / Spectrum-X", DCN[size] / SPECTRUM_X[size], ours[1] / ours[0], None)
    yield Figure("pairs out of order", 0, int(ours[1] >= ours[0]), 0)


# ---- LogGOPS ----------------------------------------------------------------------------------------------------------

def dissemination(ranks):
    """GOAL text. In round k a rank sends a byte to the one 2^k after it, when that of round k - 1 has come."""
    yield f"num_ranks {ranks}\n"
    for rank in range(ranks):
        yield f"rank {rank} {{\n"
        for k in range((ranks - 1).bit_length()):
            yield f"s{k}: send 1b to {(rank + 2**k) % ranks} tag {k}\nr{k}: recv 1b from {(rank - 2**k) % ranks} tag {k}\n"
            yield f"s{k} requires r{k - 1}\nr{k} requires r{k - 1}\n" if k else ""
        yield "}\n"


def loggops(place):
    with tempfile.NamedTemporaryFile("w", suffix=".goal") as file:
        file.writelines(dissemination(16))
        file.flush()
        ends = place.run("--loggops", LOGGOPS, "--job", file.name)["ends_ps"]
    yield Figure("the first rank ends", DISSEMINATION, min(ends) / 1000, 0, "ns")
    yield Figure("the last rank ends", DISSEMINATION, max(ends) / 1000, 0, "ns")


# ---- The table --------------------------------------------------------------------------------------------------------

ROWS = (
    Row("astra-sim/ring in HGX-H100", 0.1, astra_sim),
    Row("simai/TP of 8, ring", 0.1, tensor_parallel),
    Row("simai/TP of 8, NVLS", 0, nvls),
    Row("simai/DP of 32, Spectrum-X", 10, spectrum_x),
    Row("simai/DP of 32, all rails", 2, eight_rails),
    Row("simai/DP of 32, DCN+", 60, dcn),
    Row("loggopsim/dissemination of 16", 0.1, loggops),
    *step_times.ROWS,
)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", action="append", metavar="ROW", help="names, or patterns as simai/*")
    parser.add_argument("--not-above", type=float, metavar="SECONDS", help="leave out what takes longer")
    parser.add_argument("--simai", type=pathlib.Path, metavar="DIRECTORY", help="of SimAI's topologies")
    parser.add_argument("--simai-size", type=int, choices=SIZES, default=32, metavar="MIB",
                        help="of the allreduce over these, one that SimAI's tutorial has (default 32)")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--json", metavar="FILE", help="also write all values to FILE")
    return parser.parse_args()


def main():
    options = read_options()
    rows = [row for row in ROWS if (not options.only or any(fnmatch.fnmatch(row.name, only) for only in options.only)) and
            (options.not_above is None or row.seconds <= options.not_above)]
    if options.list:
        for row in rows:
            print(f"{row.name:42} about {row.seconds} s")
        return 0
    place = Place(options.build.resolve(), options.simai, options.simai_size)
    measured, missed = measure_rows(rows, place)
    if options.json:
        values = [{"run": row.name, **figure._asdict(), "deviation": off_by(figure), "verdict": verdict(figure)}
                  for row, figures in measured for figure in figures]
        pathlib.Path(options.json).write_text(json.dumps(values, indent=1) + "\n")
    return 1 if missed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
