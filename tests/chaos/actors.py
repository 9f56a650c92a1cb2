"""Who acts in the arena: long-living servers and clients (talk.c, streams.py) and verifying pairs (conformance/peer.c).

An actor is looked at again and again (tick): it starts what has ended as it may, and notes in `problems` what may not
be: a program that hangs, ends by itself, prints wrong bytes or a connection that falls silent."""

import re
import signal
import time

import programs
from arena import send_signal
from process import Failure, Process, describe_status, stacks

HEARTBEAT_SECONDS = 25  # without a status line; a call may wait 10 s for its broker, and the broker be stopped for 5
REST_SECONDS = 0.5  # from a death to the next life
TOLD_SECONDS = 40  # within which the survivor of a pair ends
PAIR_SECONDS = 90  # of a pair that should take a few
WRONG_BYTES = re.compile(r"WRONG|wrong data|the counter of QP|came instead of|returned \d+$|not posted so", re.M)


def parse_status(text):
    """The numbers of the last whole "status" line of a talker's output; {} when there is none."""
    lines = [line for line in text.splitlines(keepends=True) if line.startswith("status ") and line.endswith("\n")]
    return {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", lines[-1])} if lines else {}


class Actor:
    def __init__(self, name, place):
        self.name = name
        self.place = place
        self.problems = []
        self.stopped_until = 0.0
        self.is_ending = False

    def note(self, text):
        self.problems.append(f"{self.name}: {text}")

    def stop(self, seconds):
        self.stopped_until = time.monotonic() + seconds
        for pid in self.pids():
            send_signal(pid, signal.SIGSTOP)

    def is_stopped(self):
        return self.stopped_until > 0

    def go_on(self):
        self.stopped_until = 0.0
        for pid in self.pids():
            send_signal(pid, signal.SIGCONT)

    def tick(self, now):
        if self.stopped_until and now >= self.stopped_until:
            self.go_on()


class Talker(Actor):
    """A program that prints status lines until SIGTERM, started again when killed. `total` is of all its lives."""

    def __init__(self, name, place, arguments, user="root", settings=None, at_once=1, port=0):
        super().__init__(name, place)
        self.arguments = arguments
        self.user = user
        self.settings = settings
        self.at_once = at_once
        self.port = port  # of a server; 0: a client
        self.total = {}
        self.process = None
        self.epochs = 0
        self._born_at = 0.0
        self.start()

    def start(self):
        self.process = Process(self.place, self.arguments, self.user, self.settings, name=self.name)
        self.epochs += 1
        self._is_dead_since = 0.0
        self._is_killed = False
        self._seen = ""
        self._changed = self._born_at = time.monotonic()

    def pids(self):
        return [self.process.pid] if self.process.status is None else []

    def is_alive(self):
        return self.process.status is None and not self.is_stopped()

    def status(self):
        """Of this life."""
        return parse_status(self.process.stdout_tail())

    def sum(self, name):
        return self.total.get(name, 0) + self.status().get(name, 0)

    def kill(self):
        if self.process.status is None:
            self._is_killed = True
            self.process.signal(signal.SIGKILL)

    def tick(self, now):
        super().tick(now)
        if self.process.status is not None:
            self._bury(now)
        elif self.is_stopped():
            self._changed = now
        else:
            self._watch(now)

    def _watch(self, now):
        text = self.process.stdout_tail()
        if text != self._seen:
            self._seen, self._changed = text, now
        elif now - self._changed > HEARTBEAT_SECONDS:
            self.note(f"hangs: it has said nothing for {HEARTBEAT_SECONDS} s\n" + self.process.evidence(True))
            self.kill()

    def _bury(self, now):
        if not self._is_dead_since:
            self._is_dead_since = now
            self._collect()
            if not self._is_killed and not self.is_ending and self._may_not_end():
                self.note(f"ended by itself with {describe_status(self.process.status)}\n" + self.process.evidence())
        if not self.is_ending and now - self._is_dead_since > REST_SECONDS:
            self.process.__exit__()
            self.start()

    def _may_not_end(self):
        """A server that could not begin has said why: it is told, and begins again."""
        began = self.status() or "listening" in self.process.stdout_tail()
        return bool(began) or self.process.status < 0 or not self.process.stderr.strip()

    def _collect(self):
        for name, value in self.status().items():
            self.total[name] = max(self.total.get(name, 0), value) if name.endswith("_ms") else \
                self.total.get(name, 0) + value
        for kind in ("WRONG", "SILENT"):
            for line in re.findall(rf"^{kind}.*$", self.process.stdout, re.M):
                self.note(line)

    def ask_to_end(self):
        self.is_ending = True
        if self.is_stopped():
            self.go_on()
        for pid in self.pids():
            send_signal(pid, signal.SIGTERM)

    def await_end(self, seconds):
        """It ends by itself now, in time; how is its counts' matter. What it did is in `total` then."""
        try:
            if self.process.wait(seconds) < 0 and not self._is_killed:
                self.note(f"ended with {describe_status(self.process.status)}\n" + self.process.evidence())
        except Failure as failure:
            self.note(f"hangs at its end: {failure}")
        if not self._is_dead_since:
            self._is_dead_since = time.monotonic()
            self._collect()

    def close(self):
        self.process.__exit__()


def talk_server(context, place, name, user="root", settings=None):
    """It accepts whoever asks, so that a flood of requests makes it work."""
    port = programs.next_port()
    arguments = [context.program("talk"), "server", place.address[4], port, "-y"]
    return Talker(name, place, arguments, user, settings, port=port)


def talk_client(context, place, server, name, user="root", settings=None, at_once=4, messages=5, period_ms=5):
    arguments = [context.program("talk"), "client", server.place.address[4], server.port, "-w", at_once, "-m", messages,
                 "-p", period_ms, "-n", 0]
    return Talker(name, place, arguments, user, settings, at_once=at_once)


def stream(context, place, role, server_place, port, name, user="root", settings=None):
    arguments = [place.launcher, "run", "--rsockets", "--", "/usr/bin/env", "python3", "-B",
                 context.program("streams.py"), role, server_place.address[4], port]
    return Talker(name, place, arguments, user, settings, port=port if role == "server" else 0)


class Pair(Actor):
    """Two ends of an RC connection over verbs, verified, run after run. Both end well, or both say why not."""

    def __init__(self, context, name, server_place, client_place, dice, user="root", settings=None, seconds=None,
                 again=True):
        super().__init__(name, client_place)
        self.context = context
        self.places = (server_place, client_place)
        self.dice = dice
        self.user = user
        self.settings = settings
        self.seconds = seconds
        self.again = again
        self.verified = self.told = 0
        self._server = self._client = None
        self.is_over = False
        self._begin()

    def _begin(self):
        self._port = programs.next_port()
        self._op = self.dice.choice(("write", "read", "send", "atomic"))
        self._seconds = self.seconds or self.dice.choice((1, 3, 6))
        self._server = self._start(self.places[0], "server")
        self._client = None
        self._began = time.monotonic()
        self._ended_at = 0.0

    def _start(self, place, role, *more):
        arguments = [self.context.program("peer"), "-d", place.device, "-g", 0, "-p", self._port, "-u", 18, *more]
        arguments += [role] + ([self.places[0].address[4]] if role == "client" else [])
        return Process(place, arguments, self.user, self.settings, name=f"{self.name} {role}")

    def pids(self):
        return [end.pid for end in (self._server, self._client) if end and end.status is None]

    def kill(self):
        for pid in self.pids()[-1:]:
            send_signal(pid, signal.SIGKILL)

    def tick(self, now):
        super().tick(now)
        if self.is_over or self.is_stopped():
            return
        if not self._client and self._server.status is None and self._is_listening():
            self._client = self._start(self.places[1], "client", "-o", self._op, "-s", 16384, "-t", self._seconds)
        ends = [end for end in (self._server, self._client) if end]
        ended = [end for end in ends if end.status is not None]
        if len(ended) == len(ends):
            self._judge(ends)
        elif ended and not self._ended_at:
            self._ended_at = now
        elif self._ended_at and now - self._ended_at > TOLD_SECONDS:
            self._outlived(ends)
        elif now - self._began > PAIR_SECONDS:
            self.note(f"hangs: not done after {PAIR_SECONDS} s\n" + "\n".join(end.evidence(True) for end in ends))
            self._next(ends)

    def is_connected(self):
        return bool(self._client and "connected" in self._client.stdout)

    def _is_listening(self):
        wanted = f":{self._port:04X} "
        return any(wanted in line and " 0A " in line
                   for table in ("tcp", "tcp6") for line in _lines(f"/proc/{self._server.pid}/net/{table}"))

    def _judge(self, ends):
        for end in ends:
            if WRONG_BYTES.search(end.stderr):
                self.note(f"wrong bytes\n{end.evidence()}")
            elif end.status > 0 and not end.stderr.strip():
                self.note(f"ended without a word\n{end.evidence()}")
            elif end.status < 0 and end.status != -signal.SIGKILL:
                self.note(f"{end.name} ended with {describe_status(end.status)}\n{end.evidence()}")
        if len(ends) == 2 and all(end.status == 0 for end in ends):
            self.verified += 1
        else:
            self.told += 1
        self._next(ends)

    def _outlived(self, ends):
        """One end has ended, the other not. Where the two never met over TCP it waits for nothing of ours."""
        if self.is_connected():
            left = next(end for end in ends if end.status is None)
            self.note(f"{left.name} was not told of the other's end within {TOLD_SECONDS} s\n"
                      + "\n".join(end.evidence(True) for end in ends))
        self._next(ends)

    def _next(self, ends):
        self.last = ends
        for end in ends:
            end.__exit__()
        if self.again and not self.is_ending:
            self._begin()
        else:
            self.is_over = True

    def ask_to_end(self):
        self.is_ending = True
        if self.is_stopped():
            self.go_on()

    def await_end(self, seconds):
        deadline = time.monotonic() + seconds
        while not self.is_over and time.monotonic() < deadline:
            self.tick(time.monotonic())
            time.sleep(0.05)
        if not self.is_over:
            self.note("hangs at its end\n" + "\n".join(stacks(pid) for pid in self.pids()))

    def close(self):
        for end in (self._server, self._client):
            if end:
                end.__exit__()


def _lines(path):
    try:
        with open(path, encoding="ascii") as file:
            return file.readlines()
    except OSError:
        return []
