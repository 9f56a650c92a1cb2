#!/usr/bin/env python3
"""layout__fits_every_release: the layouts of rdma-core's releases against the headers that are installed, and against our
own names for what they lack. Usage: layout_test.py TABLE VERSION SOURCES COMPILER...

Writes assertions and lets the compiler judge them; 64-bit machines only, as the table."""
import collections
import re
import struct
import subprocess
import sys
import tempfile

Row = collections.namedtuple("Row", "name field offset since")

# Structures that later.h declares under names of its own, ibv_X as later_X.
OURS = "dmah dmah_init_attr mr_init_attr comp_cntr comp_cntr_caps comp_cntr_init_attr qp_attach_comp_cntr_attr".split()

# They hold a pthread_mutex_t, whose size is the architecture's: 40 bytes where the table was made.
WITH_MUTEX = "ibv_context ibv_srq ibv_wq ibv_qp ibv_qp_ex ibv_cq ibv_cq_ex".split()
MUTEX = "(long)sizeof(pthread_mutex_t) - 40"

# What our objects promise programs of every release.
PROMISES = """
_Static_assert(sizeof(struct device_object) >= {ibv_device} + 8, "drivers look behind a device");
_Static_assert(sizeof(((struct qp_object *)0)->ex) >= sizeof(struct ibv_qp_ex), "room of the header");
_Static_assert(offsetof(struct qp_object, link) >= {ibv_qp_ex}, "room for the operations of any release");
_Static_assert(offsetof(struct qp_object, later_ops) + 8 * LATER_WR_FLUSH == {wr_flush}, "where ibv_wr_flush looks");
_Static_assert(LATER_PORT_ATTR_BYTES == {ibv_port_attr}, "ibv_port_attr");
_Static_assert(LATER_PORT_ATTR_SPEED_EX == {active_speed_ex}, "ibv_port_attr.active_speed_ex");
"""


def read_rows(path):
    with open(path) as lines:
        for line in lines:
            if not line.startswith("#"):
                name, field, offset, since = line.rstrip("\n").split("\t")
                yield Row(name, field, int(offset), int(since))


def newest(rows, name, field, release=65):
    offset = [row.offset for row in rows if (row.name, row.field) == (name, field) and row.since <= release][-1]
    return f"({offset} + {MUTEX})" if name in WITH_MUTEX and offset else offset


def actual(name, field, base=None):
    if field == "(sizeof)":
        return f"(long)sizeof(struct {name})"
    minus = f" - (long)offsetof(struct {name}, {base})" if base else ""
    return f"(long)offsetof(struct {name}, {field}){minus}"


def of_header(rows, release):
    """The installed headers are of that release."""
    text = ["#include <stddef.h>", "#include <infiniband/verbs.h>", "#include <rdma/rdma_cma.h>"]
    for name, field in dict.fromkeys((row.name, row.field) for row in rows if row.since <= release):
        base = "context" if name == "verbs_context" else None
        text.append(f'_Static_assert({actual(name, field, base)} == {newest(rows, name, field, release)}, '
                    f'"{name}.{field}");')
    return "\n".join(text)


def of_ours(rows):
    text = ['#include "verbs/objects.h"']
    for row in rows:
        if row.name.removeprefix("ibv_") in OURS:
            ours = "later_" + row.name.removeprefix("ibv_")
            text.append(f'_Static_assert({actual(ours, row.field)} == {newest(rows, row.name, row.field)}, '
                        f'"{ours}.{row.field}");')
    sizes = {name: newest(rows, name, "(sizeof)") for name in ("ibv_device", "ibv_qp_ex", "ibv_port_attr")}
    promises = PROMISES.format(**sizes, wr_flush=newest(rows, "ibv_qp_ex", "wr_flush"),
                               active_speed_ex=newest(rows, "ibv_port_attr", "active_speed_ex"))
    return "\n".join(text) + promises


def judge(what, text, compiler, sources):
    with tempfile.NamedTemporaryFile("w", suffix=".c") as file:
        file.write(text + "\n")
        file.flush()
        run = subprocess.run(compiler + ["-std=gnu17", "-D_GNU_SOURCE", "-I", sources, "-fsyntax-only", file.name],
                             capture_output=True, text=True)
    wrong = re.findall(r"static assertion failed[^\n]*", run.stderr)
    if run.returncode:
        print(f"{what}:", *(wrong or [run.stderr]), sep="\n  ")
    return run.returncode == 0


def main():
    table, version, sources, *compiler = sys.argv[1:]
    if struct.calcsize("P") != 8:
        sys.exit(77)
    rows = list(read_rows(table))
    release = int(version.split(".")[2])    # 1.14.44.0 and 1.18.65.0 are 44 and 65
    good = judge(f"the headers of rdma-core {release}", of_header(rows, release), compiler, sources)
    good &= judge("our own", of_ours(rows), compiler, sources)
    # The judge must be able to find fault.
    broken = [row._replace(offset=row.offset + 1) if row.field == "iova" else row for row in rows]
    good &= not judge("a test of this test, which is to fail", of_ours(broken), compiler, sources)
    if good:
        print(f"{len(rows)} facts hold, those up to release {release} in the headers")
    return 0 if good else 1


sys.exit(main())
