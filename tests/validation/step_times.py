"""Steps of training beside published step times: rows for jobs.py. What kernels reach (mfu) is published nowhere, so it is fitted on
the first row of each group, and the others are foretold. Beside each stand two models without a network: "constant MFU", the fitted
row's time by the number of GPUs and the work, and "no network", ours with a network that takes no time. A row is evidence for the
network only where ours is nearer than both."""

import csv
import math
import pathlib

from figure import Figure
from golden import Row

HERE = pathlib.Path(__file__).resolve().parent / "jobs"
NO_NETWORK = {"network.host-rate": "100T", "network.host-delay": "0", "hosts.scale-up": "900T", "hosts.scale-up-delay": "0"}


def read(name):
    with open(HERE / f"{name}.csv", newline="") as file:
        return list(csv.DictReader(file))


def run_step(place, name, settings):
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    return place.run(HERE / f"{name}.yaml", *words)["steps"][0]


def seconds(step):
    return step["step"]["time_ps"] / 1e12


def fitted_mfu(wanted, step_of):
    """At which the step of step_of(mfu) takes so many seconds."""
    low, high = 0.05, 1.0
    while high - low > 1e-5:
        middle = (low + high) / 2
        low, high = (middle, high) if seconds(step_of(middle)) > wanted else (low, middle)
    return (low + high) / 2


class Group:
    """Runs of one scenario, of which the first is fitted."""

    def __init__(self, place, name, more=None):
        self.place, self.name, self.more = place, name, more or {}

    def step(self, settings, mfu):
        return run_step(self.place, self.name, {**settings, **self.more, "workload.mfu": f"{mfu:.6f}"})

    def fit(self, settings, published):
        return fitted_mfu(published, lambda mfu: self.step(settings, mfu))


def nearer(ours, published, *others):
    """Whether ours is the nearest."""
    return all(abs(ours / published - 1) < abs(other / published - 1) for other in others)


def by_models(place, name, runs, tolerance):
    """Figures of runs, (label, settings, published seconds, GPUs), of which the first is fitted."""
    ours, without = Group(place, name), Group(place, name, NO_NETWORK)
    _, first, published, gpus = runs[0]
    mfu, bare = ours.fit(first, published), without.fit(first, published)
    evidence = 0
    for label, settings, wanted, count in runs[1:]:
        step = ours.step(settings, mfu)
        constant, bubble = published * gpus / count, seconds(without.step(settings, bare))
        is_nearest = nearer(seconds(step), wanted, constant, bubble)
        evidence += is_nearest
        said = f"constant MFU {constant:.2f}, no network {bubble:.2f}, dp exposed {step['step']['exposed_ps']['dp'] / 1e12:.2f}"
        yield Figure(f"{label} ({said}{'; evidence' if is_nearest else ''})", wanted, seconds(step), tolerance, "s")
    yield Figure("rows that are evidence for the network", len(runs) - 1, evidence, None)


# ---- MegaScale, table 2 -----------------------------------------------------------------------------------------------

def megascale(system, batch, parts, tolerance):
    def measure(place):
        rows = [row for row in read("megascale_table2") if (row["system"], row["batch"]) == (system, str(batch))]
        yield from by_models(place, "megascale", [
            (f"{row['gpus']} GPUs", {
                "network.machines": int(row["gpus"]) // 8, "workload.dp": int(row["gpus"]) // 64, "workload.batch": batch,
                "workload.vpp": parts, "workload.schedule": "interleaved" if parts > 1 else "1f1b",
            }, float(row["step_s"]), int(row["gpus"])) for row in rows], tolerance)
    return measure


# ---- Llama 3, table 4 -------------------------------------------------------------------------------------------------

def llama3(place):
    """The ratio of the first two rows is judged; the third has a context of 131,072."""
    rows, group = read("llama3_table4"), Group(place, "llama3")
    settings = [{"network.machines": int(row["gpus"]) // 8, "workload.dp": row["dp"], "workload.cp": row["cp"],
                 "workload.sequence": row["seq"], "workload.batch": int(row["batch_per_dp"]) * int(row["dp"])} for row in rows]
    published = [float(row["step_s_derived_with_attention"]) for row in rows]
    mfu = group.fit(settings[0], published[0])
    ours = [seconds(group.step(of, mfu)) for of in settings]
    yield Figure("16,384 GPUs over 8,192: TFLOP/s of a GPU", float(rows[1]["tflops_per_gpu"]) / float(rows[0]["tflops_per_gpu"]),
                 ours[0] / ours[1] / 2, 0.03)
    yield Figure("16,384 GPUs", published[1], ours[1], None, "s")
    yield Figure("16,384 GPUs, cp 16", published[2], ours[2], None, "s")


# ---- Megatron-LM ------------------------------------------------------------------------------------------------------

def megatron(place):
    """mfu is fitted at the smallest and the largest model, and goes with the logarithm of their width between these."""
    rows, group = read("megatron_sc21_table1"), Group(place, "megatron")

    def settings(row):
        hidden, heads = int(row["hidden"]), int(row["heads"])
        shape = {"hidden": hidden, "layers": row["layers"], "heads": heads, "kv-heads": heads, "head-dim": hidden // heads,
                 "ffn": 4 * hidden, "tp": row["tp"], "pp": row["pp"], "dp": row["dp"], "batch": row["batch"]}
        return {"network.machines": int(row["gpus"]) // 8, **{f"workload.{key}": value for key, value in shape.items()}}

    ends = [rows[0], rows[-1]]
    at = [(math.log(int(row["hidden"])), group.fit(settings(row), float(row["step_s_derived"]))) for row in ends]
    for row in rows[1:-1]:
        part = (math.log(int(row["hidden"])) - at[0][0]) / (at[1][0] - at[0][0])
        mfu = at[0][1] + part * (at[1][1] - at[0][1])
        yield Figure(f"{row['params_billion']} B on {row['gpus']} GPUs", float(row["step_s_derived"]),
                     seconds(group.step(settings(row), mfu)), 0.1, "s")


def strong_scaling(place):
    """47% on 96 GPUs is fitted; what is judged is how far it falls, in points."""
    group = Group(place, "strong_scaling")

    def settings(gpus):
        return {"network.machines": gpus // 8, "workload.dp": gpus // 96}

    low, high = 0.3, 1.0
    while high - low > 1e-5:
        middle = (low + high) / 2
        low, high = (low, middle) if group.step(settings(96), middle)["mfu"] > 0.47 else (middle, high)
    falls = 100 * (0.47 - group.step(settings(4608), low)["mfu"])
    yield Figure("MFU from 96 to 4,608 GPUs falls by (within two points)", 5, falls, 0.4, "points")


ROWS = (
    Row("megascale/MegaScale, batch 768", 1, megascale("megascale", 768, 6, 0.05)),
    Row("megascale/MegaScale, batch 6144", 1, megascale("megascale", 6144, 6, 0.05)),
    Row("megascale/Megatron-LM, batch 768", 1, megascale("megatron-lm", 768, 1, 0.1)),
    Row("megascale/Megatron-LM, batch 6144", 1, megascale("megatron-lm", 6144, 1, 0.1)),
    Row("megascale/Megatron-LM, batch 768, vpp 6", 1, megascale("megatron-lm", 768, 6, None)),
    Row("megascale/Megatron-LM, batch 6144, vpp 6", 1, megascale("megatron-lm", 6144, 6, None)),
    Row("llama3/405B", 2, llama3),
    Row("megatron/table 1", 2, megatron),
    Row("megatron/strong scaling", 1, strong_scaling),
)
