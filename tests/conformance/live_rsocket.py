"""Live tests: rsockets, by Debian's programs of them and, through the preload library, by programs of sockets."""

import os
import pathlib
import re
import shutil
import time

import places
import programs
from live import BOTH, live_test
from live_cm import each_path, run_until_served
from process import Failure, Process, finish

SECONDS = 60
LOSS = {"VERBENA_FAULTS": "drop=1%,reorder=1%,seed=7"}
SOCKETS = pathlib.Path(__file__).with_name("sockets.py")
ECHO = pathlib.Path(__file__).with_name("echo.py")


def run_pair(path, server_arguments, client_arguments, least=1, settings=None):
    """Both end well, and their bytes went through Verbena the right way."""
    for arguments in (server_arguments, client_arguments):
        if not shutil.which(arguments[0]):
            raise places.Unavailable(f"{arguments[0]} is not installed")
    with Process(path.server, server_arguments, settings=settings, name="server " + server_arguments[0]) as server:
        programs.wait_reachable(path.server)
        client = run_until_served(server, path, client_arguments, settings)
        finish([server], SECONDS)
    programs.expect_counted((server, client), "bytes", least)
    programs.expect_way((server, client))
    return server, client


def wait_bound(place, port):
    """A datagram's server takes an adapter only when it answers somebody."""
    deadline = time.monotonic() + 10
    while f":{port} " not in place.run("ss", "-ulnH").stdout and time.monotonic() < deadline:
        time.sleep(0.02)


def stream(path, address, *more, program="rstream", least=1, settings=None):
    arguments = [program, "-p", programs.next_port(), *more]
    return run_pair(path, arguments + ["-b", address], arguments + ["-s", address], least, settings)


@live_test("rstream: a verified stream of bytes, in each way of calling")
def rstream(context):
    for path, address in each_path(context):
        stream(path, address, "-S", 65536, "-C", 100, "-T", "v", least=100 * 65536)
    for how in ("b", "n", "a"):
        stream(path, address, "-S", 10000, "-C", 100, "-T", "v", "-T", how, least=100 * 10000)


@live_test("rstream: sizes from 64 bytes to 1 MB, and one keepalive")
def rstream_sizes(context):
    for path, address in each_path(context, versions=(4,), names=("vb_lo", "vb_lo_wire")):
        for size, count in ((1, 300), (64, 300), (4096, 100), (1 << 20, 10)):
            stream(path, address, "-S", size, "-C", count, "-T", "v", least=size * count)
        stream(path, address, "-S", 4096, "-C", 10, "-k", 1)


@live_test("rstream: 1% of packets lost and 1% reordered, every byte verified")
def rstream_loss(context):
    for path, address in each_path(context, versions=(4,)):
        _, client = stream(path, address, "-S", 32768, "-C", 100, "-T", "v", least=100 * 32768, settings=LOSS)
        if not client.stats().get("port_faults_dropped"):
            raise Failure(f"nothing was lost\n{client.evidence()}")


@live_test("riostream: direct placement into mapped buffers, verified")
def riostream(context):
    for path, address in each_path(context, versions=(4,)):
        stream(path, address, "-S", 65536, "-C", 50, "-T", "v", program="riostream", least=50 * 65536)


@live_test("udpong: datagrams go from queue pair to queue pair")
def udpong(context):
    veth = context.world.open("veth1500")
    itself = places.Path("itself", veth.server, veth.server, veth.mtu) if veth else None  # two devices: lo is not the only
    for path, address in [*each_path(context), (itself, "127.0.0.1"), (itself, "::1")]:
        port = programs.next_port()
        arguments = ["udpong", "-p", port, "-S", 900, "-C", 50]
        with Process(path.server, arguments + ["-b", address], name="server udpong") as server:
            wait_bound(path.server, port)
            client = run_until_served(server, path, arguments + ["-s", address])
        # udpong waits for ever: its server prints nothing.
        if client.stats().get("tx_bytes", 0) < 40 * 900:
            raise Failure(f"the datagrams did not go through Verbena\n{client.evidence()}")


# ---------------------------------------------------------------------------------------------- the preload library

def rsockets(place, *arguments):
    return [place.launcher, "run", "--rsockets", "--", *arguments]


def expect_no_ordinary(process):
    found = re.search(r"had (\d+) rsockets and (\d+) ordinary IP sockets", process.stderr)
    if not found or found[2] != "0" or found[1] == "0":
        raise Failure(f"{process.name}: it did not run over rsockets alone\n{process.evidence()}")


@live_test("sockets over rsockets: what sockets promise a program, call by call")
def socket_calls(context):
    program = shutil.copy(SOCKETS, context.directory)
    path = context.world.open("vb_lo")
    for settings in (None, LOSS):
        for version in (4, 6):
            command = rsockets(path.server, "/usr/bin/python3", "-B", program, path.server.address[version])
            with Process(path.server, command, settings=settings, name="sockets.py") as process:
                process.wait_success(SECONDS * 2)
            programs.expect_counted((process,), "bytes", 1 << 20)
            expect_no_ordinary(process)


@live_test("sockets over rsockets: a kind of socket that there is none of is an ordinary one, and that is said")
def ordinary_sockets(context):
    path = context.world.open("vb_lo")
    text = ("import socket\ntry: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)\n"
            "except PermissionError: pass\nsocket.socket()")  # not every root may have a raw one
    with Process(path.server, rsockets(path.server, "/usr/bin/python3", "-c", text), name="python3") as process:
        process.wait_success(SECONDS)
    if "had 1 rsockets and 1 ordinary IP sockets" not in process.stderr:
        raise Failure(f"the ordinary socket was not counted\n{process.evidence()}")


@live_test("sockets over rsockets: who connects to a server that answers and closes at once has the answer", BOTH)
def closed_at_once(context):
    path, port = context.world.open("vb_lo"), programs.next_port()
    text = ("import os, socket\nlistener = socket.create_server(('127.0.0.1', {0}))\nif not os.fork():\n"
            "  for _ in range(200):\n    with socket.create_connection(('127.0.0.1', {0})) as end:\n"
            "      assert end.recv(10) == b'bye'\n  os._exit(0)\n"
            "for _ in range(200):\n  with listener.accept()[0] as end: end.send(b'bye')\n"
            "raise SystemExit(os.waitstatus_to_exitcode(os.wait()[1]))")
    with Process(path.server, rsockets(path.server, "/usr/bin/python3", "-c", text.format(port)), name="python3") as process:
        process.wait_success(SECONDS)


@live_test("sockets over rsockets: forked children, before and after the first rsocket")
def forked_children(context):
    path = context.world.open("vb_lo")
    fork = "import os, socket\n{}\nif os.fork(): os._exit(os.waitstatus_to_exitcode(os.wait()[1]))\nsocket.socket()"
    for first, wanted in (("", "had 1 rsockets and 0"), ("kept = socket.socket()", "had 2 rsockets and 0")):
        command = rsockets(path.server, "/usr/bin/python3", "-c", fork.format(first))
        with Process(path.server, command, name="python3") as process:
            process.wait_success(SECONDS)
        if wanted not in process.stderr:
            raise Failure(f"not as promised\n{process.evidence()}")


@live_test("sockets over rsockets: a listener outlives a request that ended before it was accepted")
def request_lost(context):
    program = shutil.copy(SOCKETS.with_name("lost_request.py"), context.directory)
    path = context.world.open("vb_lo")
    command = rsockets(path.server, "/usr/bin/python3", "-B", program)
    with Process(path.server, command, name="lost_request.py") as process:
        process.wait_success(SECONDS)
    expect_no_ordinary(process)


def wait_detached(server):
    """What its listener was offered before its child had that is nobody's once it has ended."""
    deadline = time.monotonic() + SECONDS
    while server.status is None:
        if time.monotonic() > deadline:
            raise Failure(f"it did not end\n{server.evidence()}")
        time.sleep(0.01)


def ask_all(context, server_arguments, port, clients=20, requests=300, detaches=False):
    """Many clients of a server that waits by epoll, each answered in time; what the last line says, and the server."""
    program, path = shutil.copy(ECHO, context.directory), context.world.open("vb_lo")
    serve = [program if word == ECHO else word for word in server_arguments]
    command = rsockets(path.client, "/usr/bin/python3", "-B", program, "ask", "127.0.0.1", port, clients, requests)
    with Process(path.server, rsockets(path.server, *serve), name="server") as server:
        if detaches:
            wait_detached(server)
        programs.wait_reachable(path.server)
        client = run_until_served(server, path, command, None)
        expect_no_ordinary(client)
    return client, server


@live_test("epoll over rsockets: no waiter sleeps on an answer that came while it looked", BOTH)
def epoll_wakes(context):
    port = programs.next_port()
    ask_all(context, ("/usr/bin/python3", "-B", ECHO, "serve", "127.0.0.1", port), port)


def expect_servers(client, count):
    if not client.stdout.startswith(f"{count} different answers"):
        raise Failure(f"not {count} servers answered\n{client.evidence()}")


@live_test("forked children over rsockets: they accept at the listener that they inherit, in turn", BOTH)
def forked_accept(context):
    for role, counts, servers in (("fork", (3,), 3), ("detach", (), 1)):
        port = programs.next_port()
        serve = ("/usr/bin/python3", "-B", ECHO, role, "127.0.0.1", port, *counts)
        client, _ = ask_all(context, serve, port, clients=9, requests=50, detaches=role == "detach")
        expect_servers(client, servers)


@live_test("forked children over rsockets: who accepts late is not offered what another accepted")
def forked_once(context):
    path, port = context.world.open("vb_lo"), programs.next_port()
    text = ("import os, socket, time\nlistener = socket.create_server(('127.0.0.1', {0}))\n"
            "if not os.fork():\n  time.sleep(0.5)\n  end, _ = listener.accept()\n  end.sendall(b'x')\n"
            "  time.sleep(2)\n  os._exit(0)\n"
            "if not os.fork():\n  socket.create_connection(('127.0.0.1', {0})).recv(1)\n  time.sleep(2)\n"
            "  os._exit(0)\n"
            "time.sleep(2)\nlistener.settimeout(0.5)\ntry:\n  listener.accept()\n  print('again')\n"
            "except TimeoutError:\n  print('once')")
    with Process(path.server, rsockets(path.server, "/usr/bin/python3", "-c", text.format(port)), name="python3") as process:
        process.wait_success(SECONDS)
    if process.stdout.strip() != "once":
        raise Failure(f"accepted twice\n{process.evidence()}")


@live_test("forked children over rsockets: a daemon that has given up root has its privileged port")
def forked_privilege(context):
    if os.geteuid() != 0:
        raise places.Unavailable("not root")
    path = context.world.open("vb_lo")
    text = ("import os, socket\nlistener = socket.create_server(('127.0.0.1', 81))\n"
            "if os.fork(): os._exit(0)\nos.setuid(65534)\nend, _ = listener.accept()\nend.sendall(b'served')\nend.recv(1)")
    ask = "import socket\nprint(socket.create_connection(('127.0.0.1', 81), 10).recv(10))"
    with Process(path.server, rsockets(path.server, "/usr/bin/python3", "-c", text), name="server") as server:
        programs.wait_reachable(path.server)
        client = run_until_served(server, path, rsockets(path.client, "/usr/bin/python3", "-c", ask))
    if "served" not in client.stdout:
        raise Failure(f"not served\n{client.evidence()}\n{server.evidence()}")


@live_test("forked children over rsockets: a connection of the parent's is reset, and that is said once", BOTH)
def forked_connection(context):
    program, path = shutil.copy(ECHO, context.directory), context.world.open("vb_lo")
    port = programs.next_port()
    command = rsockets(path.server, "/usr/bin/python3", "-B", program, "inetd", "127.0.0.1", port)
    text = ("import socket\nfor _ in range(3):\n  try:\n    with socket.create_connection(('127.0.0.1', {})) as end:\n"
            "      end.recv(1)\n  except ConnectionResetError: pass")
    with Process(path.server, command, name="server") as server:
        programs.wait_reachable(path.server)
        run_until_served(server, path, rsockets(path.client, "/usr/bin/python3", "-c", text.format(port)))
        server.wait_output(r"(child: connection reset\s*){3}", 10)
    if server.stderr.count("a connection that was made before a fork stays the parent's") != 1:
        raise Failure(f"not said once\n{server.evidence()}")
    if "was forked from" in server.stderr:
        raise Failure(f"verbs or ids of the parent's were used\n{server.evidence()}")


NGINX = """user root; daemon off; worker_processes 2; pid {0}/nginx.pid; error_log {0}/error.log;
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {0}/a; proxy_temp_path {0}/b; fastcgi_temp_path {0}/c;
  uwsgi_temp_path {0}/d; scgi_temp_path {0}/e;
  server {{ listen 127.0.0.1:{1}; location / {{ return 200 "worker $pid\\n"; }} }} }}
"""


@live_test("nginx over rsockets: each of its workers serves", BOTH)
def nginx(context):
    if not shutil.which("nginx") or not shutil.which("curl"):
        raise places.Unavailable("nginx or curl is not installed")
    path, port = context.world.open("vb_lo"), programs.next_port()
    config = pathlib.Path(context.directory) / "nginx.conf"
    config.write_text(NGINX.format(context.directory, port))
    answers, command = set(), rsockets(path.client, "curl", "-sS", f"http://127.0.0.1:{port}/")
    with Process(path.server, rsockets(path.server, "nginx", "-c", config), name="nginx") as server:
        programs.wait_reachable(path.server)
        for _ in range(6):
            answers.add(run_until_served(server, path, command).stdout)
    if len(answers) != 2 or not all(answer.startswith("worker") for answer in answers):
        raise Failure(f"not two workers answered: {answers}\n{server.evidence()}")


@live_test("memcached over rsockets: every answer in time", BOTH)
def memcached(context):
    if not shutil.which("memcached"):
        raise places.Unavailable("memcached is not installed")
    port = programs.next_port()
    ask_all(context, ("memcached", "-u", "root", "-l", "127.0.0.1", "-U", 0, "-t", 2, "-p", port), port)


@live_test("iperf3 over rsockets: both directions")
def iperf3(context):
    if not shutil.which("iperf3"):
        raise places.Unavailable("iperf3 is not installed")
    for path, address in each_path(context, versions=(4,)):
        for more in ([], ["-R"]):
            port = programs.next_port()
            server_arguments = rsockets(path.server, "iperf3", "-s", "-1", "-p", port)
            client_arguments = rsockets(path.client, "iperf3", "-c", address, "-p", port, "-n", "20M", *more)
            server, client = run_pair(path, server_arguments, client_arguments, least=20 << 20)
            for process in (server, client):
                expect_no_ordinary(process)


@live_test("iperf3 over rsockets: datagrams of the size that it chooses")
def iperf3_datagrams(context):
    if not shutil.which("iperf3"):
        raise places.Unavailable("iperf3 is not installed")
    for path, address in each_path(context):
        port = programs.next_port()
        server_arguments = rsockets(path.server, "iperf3", "-s", "-1", "-p", port)
        client_arguments = rsockets(path.client, "iperf3", "-c", address, "-p", port, "-u", "-b", "8M", "-t", "1")
        for process in run_pair(path, server_arguments, client_arguments, least=500 << 10):
            expect_no_ordinary(process)
