"""Live test: logins of libiscsi's initiator to tgt's iSER target. The target drops a connection whose next login request
it receives before its answer to the last one has completed, so an ack that comes late shows at once."""

import os
import shutil
import tempfile

import places
from live import BOTH, live_test
from process import Failure, Process

LOGINS = 40
PORT = 3260  # the target's, in a namespace of ours
TARGET = "iqn.2026-01.test.verbena:disk"
INITIATOR = "iqn.2026-01.test.verbena:initiator"
DISK_BYTES = 1 << 20
SECONDS = 10


def expect_programs():
    for program in ("tgtd", "tgtadm", "iscsi-inq"):
        if not shutil.which(program):
            raise places.Unavailable(f"{program} is not installed")
    if os.geteuid() != 0:
        raise places.Unavailable("needs root, as tgtd does")


def tell(place, control, mode, operation, *arguments):
    """The target is ready when it takes the first of these."""
    with Process(place, ["tgtadm", "-C", control, "--lld", "iser", "--mode", mode, "--op", operation, "--tid", "1",
                         *arguments], "root", name=f"tgtadm {operation} {mode}", through_verbena=False) as process:
        process.wait_success(SECONDS)


def make_target(place, control, disk):
    tell(place, control, "target", "new", "--targetname", TARGET)
    tell(place, control, "logicalunit", "new", "--lun", "1", "--backing-store", disk)
    tell(place, control, "target", "bind", "--initiator-address", "ALL")
    tell(place, control, "target", "bind", "--initiator-name", INITIATOR)


def login(path):
    url = f"iser://{path.server.address[4]}:{PORT}/{TARGET}/1"
    with Process(path.client, ["iscsi-inq", "-i", INITIATOR, url], "root", name="iscsi-inq") as process:
        process.wait_success(SECONDS)
        if "Vendor:IET" not in process.stdout:
            raise Failure(f"no answer of the target's\n{process.evidence()}")


@live_test(f"iSER: {LOGINS} logins of iscsi-inq to tgtd, one after the other", BOTH)
def logins(context):
    expect_programs()
    path = context.world.own_loopback("iser")
    control = str(os.getpid() % 30000)  # names the target's socket in the file system
    with tempfile.NamedTemporaryFile(prefix="verbena-iser-") as disk, \
            Process(path.server, ["tgtd", "-f", "-C", control, "-t", "1", "--iser", "pool_sz_mb=64"], "root",
                    name="tgtd") as target:
        disk.truncate(DISK_BYTES)
        target.wait_output("bs_init", SECONDS)
        make_target(path.server, control, disk.name)
        for count in range(LOGINS):
            try:
                login(path)
            except Failure as failure:
                raise Failure(f"login {count + 1} of {LOGINS}: {failure}\n{target.evidence()}") from failure
        target.signal(9)  # it ends for nothing less while it has a target
        target.wait(SECONDS)
    context.world.expect_nothing_left(path)
