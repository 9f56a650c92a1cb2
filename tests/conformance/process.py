"""Processes of a test: started with their output in files, waited for with a deadline, never left behind.

A process that outlives its deadline is a failure that shows what it printed and where it hangs (/proc stacks, gdb)."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

TAIL_LINES = 40
# Built with MPI (Debian 13's is), it believes to be one of several ranks unless a person sits at a terminal.
AT_TERMINAL = ("ucx_perftest",)


class Failure(Exception):
    """A test failed: the text says what was expected and what was seen."""


@contextlib.contextmanager
def stdin_of(program):
    """Nothing to read: a terminal at which nobody types, or no file at all."""
    if program not in AT_TERMINAL:
        yield subprocess.DEVNULL
        return
    typed, terminal = os.openpty()
    _terminals.append(typed)  # as long as we live: a program at a terminal that is gone gets SIGHUP
    try:
        yield terminal
    finally:
        os.close(terminal)


_terminals = []


class Process:
    """One program in a place (places.py), as a user, with the settings of a test in its environment."""

    def __init__(self, place, arguments, user="root", settings=None, through_verbena=True, name=None):
        self.place = place
        self.arguments = [str(argument) for argument in arguments]
        self.name = name or pathlib.Path(self.arguments[0]).name
        self._stdout = tempfile.TemporaryFile()
        self._stderr = tempfile.TemporaryFile()
        self._said = None  # both, once it is over
        environment = {key: value for key, value in os.environ.items() if not key.startswith("VERBENA_")}
        environment.update({"LC_ALL": "C", "HOME": "/tmp"})
        if through_verbena:
            environment["VERBENA_STATS"] = "1"
        self.settings = {**place.settings, **(settings or {})}
        environment.update(self.settings)
        command = place.command(self.arguments, user, through_verbena)
        self.command_line = " ".join([f"{key}={value}" for key, value in sorted(self.settings.items())] + command)
        self.began = time.monotonic()
        with stdin_of(pathlib.Path(self.arguments[0]).name) as stdin:
            self._child = subprocess.Popen(command, stdin=stdin, stdout=self._stdout, stderr=self._stderr,
                                           env=environment, start_new_session=True, cwd="/")
        self.pid = self._child.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self._said = (self.stdout, self.stderr)
        self._stdout.close()
        self._stderr.close()

    @property
    def status(self):
        """Exit status (negative: signal), or None while it runs."""
        return self._child.poll()

    @property
    def stdout(self):
        return self._said[0] if self._said else _read(self._stdout)

    @property
    def stderr(self):
        return self._said[1] if self._said else _read(self._stderr)

    def stdout_tail(self, size=4096):
        """The end of what it has printed so far: of a program that prints for long."""
        if self._said:
            return self._said[0][-size:]
        length = os.fstat(self._stdout.fileno()).st_size
        return os.pread(self._stdout.fileno(), size, max(length - size, 0)).decode(errors="replace")

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        """End it and whatever it started in its session; harmless when it has ended."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self._child.wait()

    def wait(self, seconds):
        """Its status; Failure with the evidence when it does not end in time."""
        try:
            return self._child.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            evidence = self.evidence(with_stacks=True)
            self.kill()
            raise Failure(f"{self.name} did not end within {seconds:g} s\n{evidence}") from None

    def wait_success(self, seconds):
        status = self.wait(seconds)
        if status != 0:
            raise Failure(f"{self.name} ended with {describe_status(status)}\n{self.evidence()}")
        return self

    def wait_listening(self, port, seconds=10):
        """Until it, or something in its network namespace, listens on this TCP port."""
        wanted = f":{port:04X} "
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.status is not None:
                raise Failure(f"{self.name} ended with {describe_status(self.status)} before it listened\n"
                              + self.evidence())
            for table in ("tcp", "tcp6"):
                for line in _read_lines(f"/proc/{self.pid}/net/{table}"):
                    fields = line.split()
                    if len(fields) > 3 and fields[3] == "0A" and (fields[1] + " ").endswith(wanted):
                        return
            time.sleep(0.01)
        raise Failure(f"{self.name} did not listen on TCP port {port} within {seconds:g} s\n"
                      + self.evidence(with_stacks=True))

    def wait_output(self, pattern, seconds=10):
        """The first match of a regular expression in its output so far, waiting for it."""
        deadline = time.monotonic() + seconds
        while True:
            ended = self.status is not None
            found = re.search(pattern, self.stdout, re.M) or re.search(pattern, self.stderr, re.M)
            if found:
                return found
            if ended or time.monotonic() > deadline:
                raise Failure(f"{self.name} did not print /{pattern}/ within {seconds:g} s\n"
                              + self.evidence(with_stacks=True))
            time.sleep(0.01)

    def stats(self):
        """The counters that VERBENA_STATS=1 prints at exit, by name; {} when it printed none."""
        found = {}
        for line in self.stderr.splitlines():
            if "verbena" in line or found:
                for name, value in re.findall(r"\b([a-z_]+)=(\d+)\b", line):
                    found[name] = found.get(name, 0) + int(value)
        return found

    def ways(self):
        """How its bytes went, by that summary: "local", "wire", both or nothing."""
        moved = re.findall(r"verbena: (local|wire): (.*) sent, (.*) received, ", self.stderr)
        nothing = all(line[1:] == ("0 bytes", "0 bytes") for line in moved)  # but atomics
        return {way for way, *bytes in moved if nothing or bytes != ["0 bytes", "0 bytes"]}

    def is_kept_off_memory(self):
        """It does not share memory with its neighbours, by what its settings say."""
        return self.settings.get("VERBENA_LOCAL") == "off" or any(
            self.settings.get(name) for name in ("VERBENA_PCAP", "VERBENA_FAULTS"))

    def cpu_seconds(self):
        """User and system time so far of a running process."""
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def scheduled_seconds(self):
        """(That its threads ran for, that they waited for a core), so far; nothing where the kernel does not say, or it has ended."""
        ran = waited = 0
        for task in pathlib.Path(f"/proc/{self.pid}/task").glob("*"):
            fields = "".join(_read_lines(task / "schedstat")).split()
            if len(fields) == 3:
                ran, waited = ran + int(fields[0]), waited + int(fields[1])
        return ran / 1e9, waited / 1e9

    def evidence(self, with_stacks=False):
        parts = [f"  $ {self.command_line}"]
        for label, text in (("stdout", self.stdout), ("stderr", self.stderr)):
            lines = text.rstrip().splitlines()
            if len(lines) > TAIL_LINES:
                lines = [f"({len(lines) - TAIL_LINES} lines more)"] + lines[-TAIL_LINES:]
            parts += [f"  {label}| {line}" for line in lines] or [f"  {label}| (nothing)"]
        if with_stacks and self.status is None:
            parts.append(stacks(self.pid))
        return "\n".join(parts)


class Granted:
    """What a busy machine gives processes of the CPU time that they want: which share of the time that they were ready to run for
    they ran, of the one that got least, from `after` seconds on until they end. 1 where nothing kept them waiting.

        with Granted(processes, 3) as granted:
            finish(processes, 60)
        granted.share()
    """

    EVERY, LEAST = 0.05, 0.05  # seconds: between two looks; of less than that nothing can be said

    def __init__(self, processes, after=0):
        self._processes, self._after = list(processes), after
        self._first, self._last = {}, {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()

    def _watch(self):
        begins = time.monotonic() + self._after
        while not self._is_over.wait(self.EVERY):
            for process in self._processes if time.monotonic() >= begins else []:
                seen = process.scheduled_seconds()
                if sum(seen) >= sum(self._last.get(process, (0, 0))):  # threads that have ended are seen no more
                    self._first.setdefault(process, seen)
                    self._last[process] = seen

    def share(self):
        shares = [1.0]
        for process, (ran, waited) in self._last.items():
            ran, waited = ran - self._first[process][0], waited - self._first[process][1]
            if ran + waited > self.LEAST:
                shares.append(max(ran, 0) / (ran + waited))
        return min(shares)


def finish(processes, seconds):
    """Wait for all to end well. When one fails or hangs, show every one's output, and stacks of those that still run."""
    deadline = time.monotonic() + seconds
    pending = list(processes)
    while pending:
        for process in list(pending):
            if process.status is not None:
                pending.remove(process)
                if process.status != 0:
                    _settle(pending, min(deadline, time.monotonic() + 2))
                    raise Failure(f"{process.name} ended with {describe_status(process.status)}\n"
                                  + _all_evidence(processes))
        if pending and time.monotonic() > deadline:
            names = ", ".join(process.name for process in pending)
            raise Failure(f"hang: {names} still running after {seconds:g} s\n" + _all_evidence(processes))
        time.sleep(0.005)


def describe_status(status):
    if status is None:
        return "no status: it still runs"
    if status < 0:
        return f"signal {signal.Signals(-status).name}"
    return f"status {status}"


def stacks(pid):
    """Where the threads of a process are: kernel side from /proc, user side from gdb when there is one."""
    parts = []
    for task in sorted(pathlib.Path(f"/proc/{pid}/task").glob("*")):
        state = "".join(line.split(":", 1)[1].strip()[:1] for line in _read_lines(task / "status")
                        if line.startswith("State:"))
        waits = "".join(_read_lines(task / "wchan")).strip()
        call = "".join(_read_lines(task / "syscall")).split(" ")[0].strip()
        name = "".join(_read_lines(task / "comm")).strip()
        parts.append(f"  thread {task.name} ({name}) state {state} in {waits or '-'} syscall {call or '-'}")
        parts += [f"    {line.strip()}" for line in _read_lines(task / "stack")]
    if shutil.which("gdb"):
        try:
            gdb = subprocess.run(["gdb", "-p", str(pid), "-batch", "-nx", "-ex", "thread apply all bt 12"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 text=True, errors="replace", timeout=20)
            parts += [f"  gdb| {line}" for line in gdb.stdout.splitlines() if line.startswith(("#", "Thread"))]
        except subprocess.TimeoutExpired:
            parts.append("  gdb did not answer")
    return "\n".join(parts)


def _settle(processes, deadline):
    while any(process.status is None for process in processes) and time.monotonic() < deadline:
        time.sleep(0.01)


def _all_evidence(processes):
    return "\n".join(process.evidence(with_stacks=True) for process in processes)


def _read(file):
    # The program writes at an offset that it shares with us: only what leaves it alone may be used.
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), size, 0).decode(errors="replace")


def _read_lines(path):
    try:
        return pathlib.Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return []
