#!/usr/bin/env python3
"""releases__programs_and_drivers_load: for each private node, a driver library and a program as that release's linker
would have made them, run on ours. Usage: releases_test.py LIBRARY_FOLDER LIST COMPILER...

The release's libibverbs is a stub with the version nodes of LIST and nothing behind them; the driver's constructor
registers itself, as theirs do, and its every symbol is bound when it is loaded."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from symbols_test import node_order, read_rows

DRIVER = """
%(declarations)s
extern _Bool verbs_allow_disassociate_destroy;
extern void verbs_register_driver_%(generation)s(const void *ops);
void *const driver_uses[] = { %(uses)s };
_Bool driver_flag(void) { return verbs_allow_disassociate_destroy; }
__attribute__((constructor)) static void register_driver(void) { verbs_register_driver_%(generation)s(driver_uses); }
"""

# The newest of what it asks for is the newest public node; the list of devices shows that the library runs.
PROGRAM = """
#include <stdio.h>
struct ibv_device;
struct ibv_device **ibv_get_device_list(int *count);
void ibv_free_device_list(struct ibv_device **list);
const char *ibv_wr_opcode_str(int opcode);
%(declarations)s
extern void *const driver_uses[];
_Bool driver_flag(void);
void *const uses[] = { %(uses)s };
int main(void)
{
	int count;
	struct ibv_device **list = ibv_get_device_list(&count);
	if (list)
		ibv_free_device_list(list);
	for (unsigned i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
		if (!uses[i])
			return 1;
	printf("%%d %%s\\n", driver_flag(), %(says)s);
	return 0;
}
"""


def names_of(rows, release, is_private):
    """{node: names} of what a program of that release is bound to: the newest variant of each public symbol."""
    nodes = {}
    for row in rows:
        mine = [node for node, since in row.nodes.items() if since <= release and ("PRIVATE" in node) == is_private]
        if row.kind == "old" or not mine:
            continue
        nodes.setdefault(max(mine, key=node_order), []).append(row)
    return nodes


def one_generation(rows, node):
    """A release with that private node: (its public names, the node's own)."""
    last = max(since for row in rows for name, since in row.nodes.items() if name == node)
    private = [row for row in rows if row.nodes.get(node, 99) <= last]
    return names_of(rows, last, False), {node: private}


def version_script(nodes):
    text, before = [], ""
    for node in sorted(nodes, key=lambda node: ("PRIVATE" in node, node_order(node))):
        names = "".join(f" {row.name};" for row in nodes[node])
        text.append(f"{node} {{ global:{names} }}{before};")
        before = "" if "PRIVATE" in node else f" {node}"
    return "\n".join(text)


def stub(nodes):
    lines = []
    for row in (row for rows in nodes.values() for row in rows):
        lines.append(f"_Bool {row.name};" if row.kind.startswith("data") else f"void {row.name}(void) {{}}")
    return "\n".join(lines)


def declare_and_use(rows, known):
    functions = [row.name for row in rows if row.kind == "function" and row.name not in known]
    return ("\n".join(f"void {name}(void);" for name in functions), ", ".join(f"(void *){name}" for name in functions))


def build(folder, compiler, name, text, *options):
    source = folder / (name + ".c")
    source.write_text(text)
    subprocess.run(compiler + ["-w", "-fPIC", "-fno-builtin", "-o", folder / name, source, *options], check=True)


def load_and_run(folder, compiler, libraries, rows, node):
    """What the program says."""
    generation = re.search(r"\d+$", node)[0]
    public, private = one_generation(rows, node)
    (folder / "stub.map").write_text(version_script({**public, **private}))
    build(folder, compiler, "libibverbs.so.1", stub({**public, **private}), "-shared", "-Wl,-soname,libibverbs.so.1",
          f"-Wl,--version-script={folder / 'stub.map'}")
    here = ["-L", folder, "-l:libibverbs.so.1"]
    declarations, uses = declare_and_use(private[node], [f"verbs_register_driver_{generation}"])
    build(folder, compiler, "libdriver.so.1", DRIVER % locals(), "-shared", "-Wl,-soname,libdriver.so.1",
          "-Wl,-z,now", *here)
    known = ["ibv_get_device_list", "ibv_free_device_list", "ibv_wr_opcode_str"]
    declarations, uses = declare_and_use([row for rows in public.values() for row in rows], known)
    has_text = any(row.name == "ibv_wr_opcode_str" for row in private[node])
    says = "ibv_wr_opcode_str(2)" if has_text else '"send"'
    build(folder, compiler, "program", PROGRAM % locals(), "-l:libdriver.so.1", "-Wl,-z,now", *here)
    (folder / "libibverbs.so.1").unlink()
    places = f"{libraries}:{folder}"
    run = subprocess.run([folder / "program"], env={**os.environ, "LD_LIBRARY_PATH": places, "VERBENA_LOG": "error"},
                         capture_output=True, text=True, timeout=60)
    return run.stdout.strip() or run.stderr.strip()


def main():
    libraries, listing, *compiler = sys.argv[1:]
    rows = list(read_rows(listing, "IBVERBS"))
    generations = sorted({node for row in rows for node in row.nodes if "PRIVATE" in node}, key=node_order)
    faults = 0
    for node in generations:
        with tempfile.TemporaryDirectory() as folder:
            said = load_and_run(pathlib.Path(folder), compiler, libraries, rows, node)
        print(f"{node}: {said}")
        faults += said != "0 send"
    return 1 if faults or not generations else 0


if __name__ == "__main__":
    sys.exit(main())
