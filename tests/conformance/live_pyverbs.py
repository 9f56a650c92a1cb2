"""Live tests: rdma-core's own test suite (Debian's python3-pyverbs), unmodified, run on Verbena. A test of theirs that
the device does not offer (on-demand paging, device memory, flow steering) skips itself; none may fail."""

import gzip
import pathlib
import re
import tempfile

import places
from live import live_test
from process import Failure, Process

SHIPPED = pathlib.Path("/usr/share/doc/rdma-core/tests")
MODULES = ("addr", "atomic", "cq", "cq_events", "cqex", "device", "fork", "mr", "parent_domain", "pd", "qp", "qpex",
           "relaxed_ordering", "shared_pd")


def unpack(folder):
    """The suite as it wants to be: a package "tests" with nothing compressed."""
    target = pathlib.Path(folder) / "tests"
    target.mkdir()
    for source in SHIPPED.iterdir():
        if source.suffix == ".gz":
            (target / source.stem).write_bytes(gzip.decompress(source.read_bytes()))
        elif source.suffix == ".py":
            (target / source.name).write_bytes(source.read_bytes())
    return target


def run_module(context, module):
    if not SHIPPED.is_dir():
        raise places.Unavailable("python3-pyverbs is not installed")
    place = context.world.fresh_namespace("pv")
    with tempfile.TemporaryDirectory() as folder:
        suite = unpack(folder)
        run = ["/usr/bin/python3", "-B", suite / "run_tests.py", "--dev", place.device, "--gid", "0", "-v",
               f"tests.test_{module}"]
        with Process(place, run, name=f"pyverbs test_{module}") as process:
            status = process.wait(120)
    ran = re.search(r"^Ran (\d+) test", process.stderr, re.M)
    if status != 0 or not ran or int(ran[1]) == 0:
        failures = re.findall(r"^(?:FAIL|ERROR): (.*)", process.stderr, re.M)
        raise Failure(f"{len(failures)} of its tests fail: {', '.join(failures)}\n{process.evidence()}")


def enter(module):
    live_test(f"rdma-core's own tests: {module}")(lambda context: run_module(context, module))


for name in MODULES:
    enter(name)
