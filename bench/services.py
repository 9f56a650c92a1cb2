"""Servers that people run and their clients, over rsockets or iSER and over TCP: redis, nginx, gRPC, tgt. They sleep until
something comes, so what they take of the processor counts beside what they do."""

import pathlib
import re
import signal
import tempfile
import time

import measure
import programs
from measure import Failure, Process

SECONDS = measure.PATIENCE


def _command(place, over_verbena, words):
    return [place.launcher, "run", "--rsockets", "--", *words] if over_verbena else words


def _expect_received(client, least):
    if client.stats().get("rx_bytes", 0) < least:
        raise Failure(f"it did not go through Verbena\n{client.evidence()}")


def _pair(ends, server_words, client_words, over_verbena, least, ready):
    """(what the client printed, CPU seconds of both ends). least: bytes that the client received; ready(server): it serves."""
    measure.expect_installed(server_words[0], client_words[0])
    before = measure.cpu()
    settings = ends.settings if over_verbena else None
    with Process(ends.server, _command(ends.server, over_verbena, server_words), settings=settings,
                 through_verbena=over_verbena, name=f"server {server_words[0]}") as server:
        ready(server)
        with Process(ends.client, _command(ends.client, over_verbena, client_words), settings=settings,
                     through_verbena=over_verbena, name=f"client {client_words[0]}") as client:
            client.wait_success(SECONDS)
        server.signal(signal.SIGTERM)
        server.wait(SECONDS)
    _expect_received(client, least if over_verbena else 0)
    return client, measure.cpu() - before


def _listens(ends, over_verbena, port):
    """A listener over rsockets is none of the kernel's: it is there soon after its broker's port is."""
    def ready(server):
        if not over_verbena:
            server.wait_listening(port)
            return
        programs.wait_reachable(ends.server)
        time.sleep(0.5)
    return ready


# ---- redis ----------------------------------------------------------------------------------------------------------

REQUESTS = 100000


def redis(ends, over_verbena, pipeline):
    """(GETs a second by eight clients, each so many at once; CPU seconds of a million)"""
    port, address = programs.next_port(), ends.server.address[4]
    requests = REQUESTS * pipeline
    client, cpu = _pair(ends, ["redis-server", "--bind", address, "--port", port, "--save", "", "--protected-mode", "no"],
                        ["redis-benchmark", "-h", address, "-p", port, "-t", "get", "-n", requests, "-P", pipeline, "-c", 8,
                         "--csv"], over_verbena, requests, lambda server: server.wait_output("Ready to accept connections"))
    return float(programs.expect(client, r'^"GET","([\d.]+)"', "the rate of GETs")[1]), cpu / requests * 1e6


# ---- nginx ----------------------------------------------------------------------------------------------------------

FILE_BYTES = 64 * 1024
PAGES = 20000
NGINX = """user root; daemon off; worker_processes 1; pid {0}/pid; error_log {0}/log; events {{ worker_connections 64; }}
http {{ access_log off; keepalive_requests 1000000; client_body_temp_path {0}/a; proxy_temp_path {0}/b;
  fastcgi_temp_path {0}/c; uwsgi_temp_path {0}/d; scgi_temp_path {0}/e; server {{ listen {1}:{2}; root {0}; }} }}
"""


def nginx(ends, over_verbena):
    """(pages of 64 KiB a second by eight connections, CPU seconds a GB)"""
    port, address = programs.next_port(), ends.server.address[4]
    with tempfile.TemporaryDirectory(prefix="verbena-") as directory:
        config = pathlib.Path(directory, "nginx.conf")
        config.write_text(NGINX.format(directory, address, port))
        pathlib.Path(directory, "page").write_bytes(bytes(FILE_BYTES))
        client, cpu = _pair(ends, ["nginx", "-c", config], ["ab", "-q", "-k", "-c", 8, "-n", PAGES, f"http://{address}:{port}/page"],
                            over_verbena, PAGES * FILE_BYTES, _listens(ends, over_verbena, port))
    if not re.search(r"^Failed requests:\s+0$", client.stdout, re.M) or "Non-2xx" in client.stdout:
        raise Failure(f"pages were not served\n{client.evidence()}")
    rate = float(programs.expect(client, r"^Requests per second:\s+([\d.]+)", "the rate of pages")[1])
    return rate, cpu / (PAGES * FILE_BYTES / 1e9)


# ---- gRPC -----------------------------------------------------------------------------------------------------------

GRPC = pathlib.Path(__file__).resolve().with_name("grpc_pair.py")
CALLS = 3000


def grpc(ends, over_verbena):
    """(microseconds of a call, messages of 1 KiB a second of a stream)"""
    port = programs.next_port()
    address = f"{ends.server.address[4]}:{port}"
    command = ["/usr/bin/python3", "-B", GRPC]
    client, _ = _pair(ends, [*command, "serve", address], [*command, "ask", address, CALLS], over_verbena, CALLS,
                      lambda server: server.wait_output("serving"))
    return tuple(float(programs.expect(client, rf"^{name}=([\d.]+)", "what it measured")[1]) for name in ("unary_us", "stream"))


# ---- tgt ------------------------------------------------------------------------------------------------------------

TARGET = "iqn.2026-01.test.verbena:disk"
INITIATOR = "iqn.2026-01.test.verbena:initiator"
DISK_BYTES = 64 << 20
ISCSI_SECONDS = 3


def iscsi(ends, over_verbena, blocks):
    """(reads of so many blocks of 512 bytes a second, 32 at once; CPU seconds a GB): libiscsi's initiator of tgt's target,
    over iSER or plain."""
    measure.expect_installed("tgtd", "tgtadm", "iscsi-perf")
    kind, control = ("iser", "21") if over_verbena else ("iscsi", "22")
    settings = ends.settings if over_verbena else None

    def tell(mode, operation, *arguments):
        with Process(ends.server, ["tgtadm", "-C", control, "--lld", kind, "--mode", mode, "--op", operation, "--tid", "1",
                                   *arguments], through_verbena=False, name=f"tgtadm {operation}") as process:
            process.wait_success(SECONDS)

    before = measure.cpu()
    with tempfile.NamedTemporaryFile(prefix="verbena-", dir="/dev/shm") as disk, \
            Process(ends.server, ["tgtd", "-f", "-C", control, "-t", "1", "--iser", "pool_sz_mb=64"], settings=settings,
                    through_verbena=over_verbena, name="tgtd") as target:
        disk.truncate(DISK_BYTES)
        target.wait_output("bs_init", SECONDS)
        tell("target", "new", "--targetname", TARGET)
        tell("logicalunit", "new", "--lun", "1", "--backing-store", disk.name)
        tell("target", "bind", "--initiator-address", "ALL")
        tell("target", "bind", "--initiator-name", INITIATOR)
        with Process(ends.client, ["iscsi-perf", "-i", INITIATOR, "-b", blocks, "-m", 32, "-t", ISCSI_SECONDS,
                                   f"{kind}://{ends.server.address[4]}:3260/{TARGET}/1"], settings=settings,
                     through_verbena=over_verbena, name="iscsi-perf") as client:
            client.wait_success(SECONDS)
        # The target ends for nothing less while it has one: it is killed here.
    _expect_received(client, DISK_BYTES if over_verbena else 0)
    rate = float(programs.expect(client, r"iops average (\d+) \(\d+ MB/s\)\s*$", "the rate of reads")[1])
    return rate, (measure.cpu() - before) / (rate * ISCSI_SECONDS * blocks * 512 / 1e9)


