"""A cluster of Ceph's: one monitor and one OSD that keeps its objects in memory, at the server's end; `rados bench` at the client's. By
Ceph's own messengers, async+rdma and async+posix."""

import contextlib
import pathlib
import tempfile
import time
import uuid

import measure
import programs
from measure import Failure, Process

MIB = 1 << 20
SECONDS = 5
AT_ONCE = 8
DAEMON_SECONDS = 30  # beyond which a daemon does not come up

CONFIG = """[global]
fsid = {fsid}
mon_host = v1:{host}:{port}
public_addr = {host}
cluster_addr = {host}
ms_bind_msgr2 = false
ms_type = {messenger}
ms_async_rdma_device_name = {device}
ms_async_rdma_receive_queue_len = 256
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
osd_objectstore = memstore
memstore_device_bytes = 8G
mon_data = {directory}/mon.a
osd_data = {directory}/osd.0
run_dir = {directory}
admin_socket = {directory}/$name.$pid.asok
log_file = {directory}/$name.log
mon_cluster_log_file = {directory}/cluster.log
mon_data_avail_warn = 1
mon_data_avail_crit = 1
"""


class Cluster:
    def __init__(self, ends, over_verbena, directory):
        self._ends, self._over_verbena, self._directory = ends, over_verbena, pathlib.Path(directory)
        self._port, self._fsid, self._running = programs.next_port(), str(uuid.uuid4()), contextlib.ExitStack()
        for place in (ends.server, ends.client):
            self._config(place).write_text(CONFIG.format(
                fsid=self._fsid, host=ends.server.address[4], port=self._port, directory=directory, device=place.device,
                messenger="async+rdma" if over_verbena else "async+posix"))

    def _config(self, place):
        return self._directory / f"{'server' if place is self._ends.server else 'client'}.conf"

    def _start(self, place, words):
        settings = {**(self._ends.settings if self._over_verbena else {}), "CEPH_CONF": str(self._config(place))}
        return Process(place, words, settings=settings, through_verbena=self._over_verbena, name=" ".join(map(str, words[:2])))

    def run(self, place, *words, patience=DAEMON_SECONDS):
        """A program to its end; every one of Ceph's needs a device where the messenger is RDMA's."""
        with self._start(place, words) as process:
            process.wait_success(patience)
        return process

    def _tell(self, *words):
        """The monitor refuses commands for a while, when it has just come up."""
        until = time.monotonic() + DAEMON_SECONDS
        while True:
            with self._start(self._ends.server, ["ceph", *words]) as process:
                if process.wait(DAEMON_SECONDS) == 0:
                    return
            if time.monotonic() > until:
                raise Failure(f"ceph {' '.join(words)}\n{process.evidence()}")
            time.sleep(0.5)

    def _start_osd(self, running):
        """It ends when the monitor refuses its first command as of another cluster, by a race of theirs, with any messenger."""
        until, log = time.monotonic() + DAEMON_SECONDS, self._directory / "osd.0.log"
        while time.monotonic() < until:
            with contextlib.ExitStack() as attempt:
                daemon = attempt.enter_context(self._start(self._ends.server, ["ceph-osd", "-i", "0", "-f"]))
                while daemon.status is None and time.monotonic() < until:
                    if "starting boot process" in log.read_text(errors="replace"):
                        running.push(attempt.pop_all())
                        return
                    time.sleep(0.1)
        raise Failure(f"the OSD did not come up\n{daemon.evidence()}")

    def __enter__(self):
        server, directory, osd = self._ends.server, self._directory, str(uuid.uuid4())
        monitors = directory / "monitors"
        (directory / "osd.0").mkdir()
        self.run(server, "monmaptool", "--create", "--fsid", self._fsid, "--addv", "a", f"v1:{server.address[4]}:{self._port}", monitors)
        self.run(server, "ceph-mon", "--mkfs", "-i", "a", "--monmap", monitors)
        with contextlib.ExitStack() as running:
            running.enter_context(self._start(server, ["ceph-mon", "-i", "a", "-f"]))
            self._tell("osd", "new", osd, "0")
            self.run(server, "ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd, "--no-mon-config")
            self._start_osd(running)
            self._tell("osd", "pool", "create", "bench", "8")
            self.run(server, "rados", "-p", "bench", "put", "first", monitors)  # waits for the OSD
            self._running = running.pop_all()
        return self

    def __exit__(self, *_):
        self._running.close()


def rados(ends, over_verbena):
    """((MB/s, CPU seconds a GB) of writes, the same of reads): objects of 1 MiB, eight at once. Reads are of any of these,
    again and again, since the first few are the first use of the client's buffers, too."""
    measure.expect_installed("ceph-mon", "ceph-osd", "ceph", "rados", "monmaptool")

    def one(cluster, *words):
        before = measure.busy()
        client = cluster.run(ends.client, "rados", "-p", "bench", "bench", SECONDS, *words, "-t", AT_ONCE,
                             patience=SECONDS + measure.PATIENCE)
        used = measure.busy() - before
        moved = int(programs.expect(client, r"^Total (?:writes|reads) made:\s+(\d+)", "how many were made")[1]) * MIB
        if over_verbena and sum(client.stats().get(counter, 0) for counter in ("tx_bytes", "rx_bytes")) < moved:
            raise Failure(f"it did not go through Verbena\n{client.evidence()}")
        return float(programs.expect(client, r"^Bandwidth \(MB/sec\):\s+([\d.]+)", "the bandwidth")[1]), used / (moved / 1e9)

    with tempfile.TemporaryDirectory(prefix="verbena-") as directory, Cluster(ends, over_verbena, directory) as cluster:
        return one(cluster, "write", "-b", MIB, "--no-cleanup"), one(cluster, "rand")
