#!/usr/bin/env python3
"""includes_test ROOT: reads every #include of src/ against the arrows of docs/architecture.md ("may use" in its table of
rooms), and the system headers of the pure rooms against a short list."""

import pathlib
import re
import sys
import unittest

# Whoever may use any room at all may use this one, for the others' headers speak in its types.
THROUGH_OTHERS = {"base"}

PURE = {"base", "wire", "cc", "core", "roce", "local", "engine", "cm"}
PURE_SYSTEM_HEADERS = {
    "assert.h", "errno.h", "inttypes.h", "limits.h", "math.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h", "stdlib.h", "string.h",
    "sched.h",        # sched_yield of the short lock
    "immintrin.h",    # carry-less multiplication
    "features.h",     # of which C library
    "sys/auxv.h",     # which instructions the processor has
}

# A room that is pure but for files, and what one file of it alone has beside.
ALMOST_PURE = {"net": {"stdio.h", "stdarg.h"}, "steps": set(), "fabric": set()}
ALONE = {"src/fabric/windows.c": {"pthread.h", "time.h"}, "src/cc/choice.c": {"stdarg.h", "stdio.h"},
         "src/net/unpack.c": {"zlib.h"},
         "src/net/text.c": {"fcntl.h", "sys/stat.h", "unistd.h"}}    # files that are regular, without waiting for a pipe's other end

ASSERTS = "src/base/invariant.h"  # alone says what assert() is

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


def read_arrows(markdown):
    """{room: {"wire", "host/protocol.h", ...}} from the rows of the table."""
    arrows = {}
    for room, uses in re.findall(r"^\| `(\w+)/` \|[^|]*\|([^|]*)\|", markdown, re.M):
        named = set()
        for use in (u.strip() for u in uses.split(",")):
            if use == "nobody":
                continue
            single = re.fullmatch(r"(\w+)'s ([\w/]+)", use)  # "host's protocol": that one header
            named.add(f"{single[1]}/{single[2]}.h" if single else use)
        arrows[room] = named | (THROUGH_OTHERS if named else set())
    return arrows


def complaints(room, name, text, arrows):
    """What is wrong with the includes of one file of a room."""
    for kind, included in INCLUDE.findall(text):
        if kind == "<":
            if included == "assert.h" and name != ASSERTS:
                yield f"{name} includes <assert.h>: base/invariant.h knows what it is in a release build"
            allowed = PURE_SYSTEM_HEADERS | ALMOST_PURE.get(room, set()) | ALONE.get(name, set())
            if room in PURE | ALMOST_PURE.keys() and included not in allowed:
                yield f"{name} is pure, yet includes <{included}>"
        elif ".." in included:
            yield f"{name} includes {included}: name the room instead"
        elif "/" in included:
            other = included.split("/")[0]
            if other != room and other not in arrows[room] and included not in arrows[room]:
                allowed = ", ".join(sorted(arrows[room])) or "nobody"
                yield f"{name} includes {included}, but {room}/ may use {allowed}"


def check_tree(root):
    arrows = read_arrows((root / "docs/architecture.md").read_text())
    found = []
    for folder in sorted(p for p in (root / "src").iterdir() if p.is_dir()):
        if folder.name not in arrows:
            found.append(f"src/{folder.name}/ is not among the rooms of docs/architecture.md")
            continue
        for file in sorted(folder.rglob("*.[ch]")):
            found += complaints(folder.name, str(file.relative_to(root)), file.read_text(), arrows)
    return found


class Includes(unittest.TestCase):
    root = None

    def test_tree__follows_the_arrows(self):
        self.assertEqual(check_tree(self.root), [])

    def test_arrows__are_read_from_the_table(self):
        arrows = read_arrows((self.root / "docs/architecture.md").read_text())
        self.assertEqual(arrows["base"], set())
        self.assertEqual(arrows["wire"], {"base"})
        self.assertEqual(arrows["core"], {"wire/packet.h", "wire/opcode.h", "base"})
        self.assertEqual(arrows["local"], {"core", "base"})
        self.assertEqual(arrows["roce"], {"core", "wire", "cc", "base"})
        self.assertEqual(arrows["engine"], {"roce", "local", "core", "wire", "cc", "base"})
        self.assertIn("host/protocol.h", arrows["broker"])

    def test_rsocket__stands_on_the_public_abi(self):
        arrows = read_arrows((self.root / "docs/architecture.md").read_text())
        self.assertEqual(arrows["rsocket"], {"rdmacm/family.h", "verbs/wait.h", "os", "base"})
        for inner in ("rdmacm/objects.h", "verbs/objects.h", "host/connections.h", "cm/cm.h"):
            self.assertEqual(len(list(complaints("rsocket", "file.c", f'#include "{inner}"', arrows))), 1, inner)

    def test_checker__sees_what_is_wrong(self):
        arrows = {"wire": {"base"}, "port": {"wire", "base"}, "broker": {"host/protocol.h", "base"}}

        def of(room, text):
            return list(complaints(room, "file.c", text, arrows))

        self.assertEqual(of("wire", '#include <stdint.h>\n#include "base/list.h"\n#include "wire/mad.h"\n#include "a.h"'), [])
        self.assertEqual(of("broker", '#include "host/protocol.h"'), [])
        self.assertEqual(len(of("wire", '#include "port/port.h"')), 1)
        self.assertEqual(len(of("wire", '  #  include "port/port.h"')), 1)
        self.assertEqual(len(of("wire", '#include "../port/port.h"')), 1)
        self.assertEqual(len(of("wire", "#include <sys/socket.h>")), 1)
        self.assertEqual(len(of("port", "#include <sys/socket.h>")), 0)
        self.assertEqual(len(of("wire", "#include <stdio.h>")), 1)
        self.assertEqual(len(of("port", "#include <assert.h>")), 1)
        self.assertEqual(len(of("net", "#include <stdio.h>")), 0)
        self.assertEqual(len(of("net", "#include <unistd.h>")), 1)
        self.assertEqual(len(of("fabric", "#include <stdio.h>")), 1)
        self.assertEqual(len(of("fabric", "#include <pthread.h>")), 1)
        self.assertEqual(list(complaints("fabric", "src/fabric/windows.c", "#include <pthread.h>", arrows)), [])
        self.assertEqual(len(of("broker", '#include "host/host.h"')), 1)


if __name__ == "__main__":
    Includes.root = pathlib.Path(sys.argv.pop())
    unittest.main()
