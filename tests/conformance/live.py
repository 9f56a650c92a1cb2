"""The live tests: what happens to running programs when processes die, stall, crowd or meet bad settings.

Each is a function of a Context in one of the live_*.py files, entered in TESTS by @live_test."""

import collections
import importlib

LiveTest = collections.namedtuple("LiveTest", "name run")
TESTS = []


class Context:
    """What a live test gets: a world to make places in, and our own test client (peer.c)."""

    def __init__(self, world, peer):
        self.world = world
        self.peer = peer  # where it lies, readable by everyone


def live_test(name):
    def enter(function):
        TESTS.append(LiveTest(name, function))
        return function
    return enter


for module in ("live_kill", "live_load", "live_settings", "live_ucx", "live_sysfs", "live_cm", "live_rsocket",
               "live_fabric", "live_qperf"):
    importlib.import_module(module)
