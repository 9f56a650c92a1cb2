#!/usr/bin/env python3
"""symbols_test NM RSOCKET NET FABRIC LIBRARY...: which symbols the pure rooms' static libraries take from outside, against a
short list. A room that made a system call, read the clock or started a thread would need others. Beside these, net may read
files, and fabric may start threads and ask what a run cost. Last, which symbols of ours the library of rsockets takes."""

import re
import subprocess
import sys
import unittest

ALLOWED = {
    "memchr", "memcmp", "memcpy", "memmove", "memset", "strchr", "strcmp", "strcspn", "strlen", "strncmp", "strspn",
    "aligned_alloc", "calloc", "free", "malloc", "posix_memalign", "qsort", "realloc",
    "abort", "__assert_fail",
    "snprintf", "vsnprintf",            # what is wrong with a text, in words
    "cbrt", "exp", "log", "pow", "sqrt",
    "sched_yield",                      # the short lock of base/lock.h
    "__cpu_model", "__cpu_features2", "__cpu_indicator_init", "getauxval",    # which instructions the processor has
    "__divti3", "__udivti3", "__udivmodti4",    # division of 128 bits, where the compiler has no instruction for it
    "_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail", "__tls_get_addr",
}
NET_WANTS = {"fopen", "fopen64", "fclose", "fread", "ferror", "strtod", "__errno_location", "__fread_chk",
             "open", "open64", "fstat", "fstat64", "fdopen", "close",      # whether a file is a regular one
             "inflate", "inflateEnd", "inflateInit2_", "inflateReset"}   # zlib's, of files that gzip packed
FABRIC_WANTS = {
    "clock_gettime", "sysconf",         # what a run cost; never what it does
}
FABRIC_FORMS = re.compile(r"pthread_\w+")
# All that rsockets want of ours beside the calls that librdmacm and libibverbs export to programs, and os' clock and route.
RSOCKET_WANTS = {"vb_channel_has_event", "vb_cq_lanes", "vb_cq_take_here", "vb_id_accepting", "vb_id_hear_lost_requests", "vb_id_set_family",
                 "vb_poll_asleep", "vb_route_source", "vb_signal_ends_wait"}
RSOCKET_CLOCK = re.compile(r"vb_clock_\w+")

# Added by compilers: checked string functions, sanitizers, coverage, atomics that are not inline, division of 128 bits.
ALLOWED_FORMS = re.compile(r"__(mem|str)\w+_chk|__v?snprintf_chk|__(asan|ubsan|tsan|msan|sanitizer|gcov|llvm)_\w+|__aarch64_\w+|"
                           r"__u?(div|mod|divmod)ti[34]")


def read_symbols(text):
    """(undefined, defined) of nm's output."""
    undefined, defined = set(), set()
    for kind, name in re.findall(r"^[0-9a-f ]*([A-Za-z]) (\S+)$", text, re.M):
        (undefined if kind in "Uwv" else defined).add(name)
    return undefined, defined


def strangers(undefined, defined):
    return sorted(name for name in undefined - defined - ALLOWED if not ALLOWED_FORMS.fullmatch(name))


class Symbols(unittest.TestCase):
    nm, rsocket, net, fabric, libraries = None, None, None, None, []

    def read(self, library):
        text = subprocess.run([self.nm, library], check=True, stdout=subprocess.PIPE, text=True).stdout
        return read_symbols(text)

    def test_pure_rooms__want_nothing_from_outside(self):
        defined = set().union(*(self.read(library)[1] for library in self.libraries))
        self.assertIn("vb_packet_decode", defined)
        for library in self.libraries:
            with self.subTest(library):
                self.assertEqual(strangers(self.read(library)[0], defined), [])

    def test_net__wants_only_files_beside(self):
        defined = set().union(*(self.read(library)[1] for library in self.libraries + [self.net]))
        self.assertIn("network_finish", defined)
        self.assertEqual([name for name in strangers(self.read(self.net)[0], defined) if name not in NET_WANTS], [])

    def test_fabric__wants_only_threads_beside(self):
        defined = set().union(*(self.read(library)[1] for library in self.libraries + [self.net, self.fabric]))
        self.assertIn("fabric_run", defined)
        wanted = strangers(self.read(self.fabric)[0], defined)
        self.assertEqual([name for name in wanted if name not in FABRIC_WANTS and not FABRIC_FORMS.fullmatch(name)], [])

    def test_rsocket__stands_on_the_public_abi(self):
        undefined, defined = self.read(self.rsocket)
        wanted = {name for name in undefined - defined if name.startswith("vb_")}
        self.assertEqual({name for name in wanted if not RSOCKET_CLOCK.fullmatch(name)}, RSOCKET_WANTS)

    def test_checker__sees_a_system_call(self):
        undefined, defined = read_symbols("""
codec.c.o:
                 U memcpy
                 U __memcpy_chk
                 U clock_gettime
                 U vb_theirs
                 U vb_ours
0000000000000010 T vb_ours
""")
        self.assertEqual(strangers(undefined, defined), ["clock_gettime", "vb_theirs"])


if __name__ == "__main__":
    Symbols.nm, Symbols.rsocket, Symbols.net, Symbols.fabric, *Symbols.libraries = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
