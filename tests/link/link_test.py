#!/usr/bin/env python3
"""link_test BUILD: the link does to packets what it is asked to, carries TCP and RDMA at its rate, and leaves nothing behind.

What is measured has bounds for a machine that others use, too: a delay is never shorter than asked, and may be longer in
some packets."""

import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
LINK = BUILD / "tests/link/link"
PORT = 7000
NO_LINK = 125
CLOCKS = 10  # us that the kernel's two clocks may drift apart while a packet is under way: the link has one, the probe the other
SKIPPED = 77
TCP_RECEIVER = ("import socket,time;s=socket.create_server(('0.0.0.0',7001));c=s.accept()[0];n=0;b=None\n"
                "while d:=c.recv(1<<20):\n n+=len(d);b=b or time.monotonic()\nprint(n*8/(time.monotonic()-b)/1e6)")
TCP_SENDER = ("import socket,time;s=socket.create_connection(('10.78.0.2',7001));e=time.monotonic()+3\n"
              "while time.monotonic()<e: s.sendall(bytes(1<<18))")


def run(options, near, far=None, port=PORT):
    """(report of the link, what the far command printed, what the near one did)."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        command = [LINK, "--json", f"{folder}/report.json", *options]
        if far:
            command += ["--far", f"{far} > {folder}/far.txt", "--far-port", str(port)]
        done = subprocess.run([*map(str, command), "--", *near], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60, check=False)
        if done.returncode:
            raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}")
        far_said = pathlib.Path(folder, "far.txt").read_text() if far else ""
        return json.loads(pathlib.Path(folder, "report.json").read_text()), far_said, done.stdout


def probe(options, count, *more):
    """(report, [(number, source port, delay in us)] as they came)."""
    script = f"python3 {HERE / 'probe.py'}"
    report, came, _ = run(options, [*script.split(), "send", "10.78.0.2", str(PORT), str(count), *map(str, more)],
                          f"{script} receive {PORT}")
    return report, json.loads(came)


def runs_of_missing(came, count):
    """Lengths of the runs of numbers below count that did not come."""
    there = {number for number, _, _ in came}
    runs, length = [], 0
    for number in range(count + 1):
        if number < count and number not in there:
            length += 1
        elif length:
            runs.append(length)
            length = 0
    return runs


class WhatItDoes(unittest.TestCase):
    def test_nothing_is_asked__all_come_in_order(self):
        report, came = probe([], 3000, "--gap", 50)
        self.assertEqual([number for number, _, _ in came], list(range(3000)))
        self.assertLess(statistics.median(delay for _, _, delay in came), 2000)
        self.assertEqual(report["forward"]["lost"], 0)
        self.assertGreaterEqual(report["forward"]["delivered"], 3000)

    def test_delay__is_never_shorter_and_seldom_longer(self):
        _, came = probe(["--delay", "20ms"], 3000, "--gap", 100)
        delays = sorted(delay for _, _, delay in came)
        self.assertEqual(len(delays), 3000)
        self.assertGreaterEqual(delays[0], 20000 - CLOCKS)
        self.assertLess(delays[0], 20150)
        self.assertLess(statistics.median(delays), 21000)

    def test_delay__of_one_direction_is_of_that_alone(self):
        _, came = probe(["--backward", "delay=20ms"], 500)
        self.assertLess(min(delay for _, _, delay in came), 1000)

    def test_loss__is_its_share_and_the_same_by_the_same_seed(self):
        report, came = probe(["--loss", "5%", "--seed", "3"], 5000, "--gap", 50)
        self.assertTrue(4000 < len(came) < 4850, len(came))
        self.assertAlmostEqual(report["forward"]["lost"], 5000 - len(came), delta=20)
        self.assertLess(statistics.mean(runs_of_missing(came, 5000)), 1.2)

    def test_burst__loses_in_runs(self):
        _, came = probe(["--loss", "5%", "--burst", "10"], 8000, "--gap", 50)
        runs = runs_of_missing(came, 8000)
        self.assertTrue(6 < statistics.mean(runs) < 15, runs)
        self.assertTrue(200 < sum(runs) < 700, sum(runs))

    def test_reorder__delivers_some_later_and_none_never(self):
        report, came = probe(["--reorder", "5%", "--reorder-by", "2ms"], 4000, "--gap", 100)
        self.assertEqual(sorted(number for number, _, _ in came), list(range(4000)))
        reordered = report["forward"]["reordered"]
        self.assertTrue(140 < reordered < 260, reordered)
        self.assertGreaterEqual(sum(delay >= 2000 - CLOCKS for _, _, delay in came), reordered - 5)  # some were of other packets
        # Where the sender did not get a core for 2 ms, nobody was there to pass.
        self.assertGreater(sum(after[0] < before[0] for before, after in zip(came, came[1:])), 20)

    def test_duplicate__delivers_some_twice(self):
        report, came = probe(["--duplicate", "10%"], 3000, "--gap", 50)
        self.assertTrue(3200 < len(came) < 3400, len(came))
        self.assertGreaterEqual(report["forward"]["duplicated"], len(came) - 3000)

    def test_rate__spaces_packets_and_a_full_queue_drops(self):
        report, came = probe(["--rate", "10Mb/s", "--queue", "15kB"], 500, "--gap", 100, "--bytes", 1500)
        self.assertGreater(report["forward"]["overflowed"], 400)  # 120 Mb/s into 10 Mb/s
        # Ten packets of 1.2 ms wait before it at most.
        self.assertTrue(9000 < max(delay for _, _, delay in came) < 20000)

    def test_paths__have_faults_of_their_own(self):
        report, came = probe(["--paths", "4", "--path", "3:loss=30%", "--path", "2:delay=10ms", "--path", "1:dead-after=1ms"],
                             4000, "--gap", 100, "--ports", 4)
        of_port = {port: [delay for _, source, delay in came if source == port] for port in range(40000, 40004)}
        self.assertEqual(len(of_port[40000]), 1000)
        self.assertLess(len(of_port[40001]), 10)  # it was dead almost at once
        self.assertEqual(len(of_port[40002]), 1000)
        self.assertGreaterEqual(min(of_port[40002]), 10000 - CLOCKS)
        self.assertLess(min(of_port[40000]), 1000)
        self.assertTrue(600 < len(of_port[40003]) < 800, len(of_port[40003]))
        self.assertAlmostEqual(report["forward"]["paths"][3]["lost"], 1000 - len(of_port[40003]), delta=5)


class WhatItCarries(unittest.TestCase):
    def test_tcp__reaches_the_rate(self):
        report, far, _ = run(["--rate", "200Mb/s", "--delay", "5ms", "--queue", "1MB"], ["python3", "-c", TCP_SENDER],
                             f'python3 -c "{TCP_RECEIVER}"', 7001)
        self.assertTrue(150 < float(far) < 200, far)
        self.assertEqual(report["forward"]["dropped_before"], 0)

    def test_a_gigabit__takes_less_than_a_core(self):
        report, _, _ = run(["--rate", "1Gb/s", "--queue", "4MB"], ["python3", "-c", TCP_SENDER],
                           f'python3 -c "{TCP_RECEIVER}"', 7001)
        carried = report["forward"]["delivered_bytes"] * 8 / 3
        self.assertGreater(carried, 0.4e9)
        self.assertLess(report["cpu_seconds"] / report["forward"]["delivered_bytes"] * 125e6, 0.9)  # seconds for 1 Gb

    @unittest.skipUnless(shutil.which("ib_write_bw") and (BUILD / "verbena").exists(), "no ib_write_bw, or no build/verbena")
    def test_verbena__writes_at_the_rate_in_trains(self):
        for gid in (0, 1):  # IPv4, whose numbers in a train the ICRC covers, and IPv6
            program = f"{BUILD}/verbena run --stats -- ib_write_bw -d vb_link0 -x {gid} -F -D 2 -s 65536"
            report, far, near = run(["--rate", "200Mb/s", "--delay", "1ms", "--queue", "4MB"], [*program.split(), "10.78.0.2"],
                                    f"({program} 2>&1)", 18515)
            rows = [line.split() for line in near.splitlines() if line.split()[:1] == ["65536"]]
            self.assertEqual(len(rows), 1, near)
            self.assertTrue(17 < float(rows[0][3]) < 26, rows)  # MB/s
            self.assertIn("port_rx_segments=", far)
            self.assertNotIn("drop", far)
            self.assertEqual([report["forward"][name] for name in ("malformed", "refused", "dropped_before")], [0, 0, 0])


def processes_with(word):
    """Process IDs whose command line has the word, zombies apart."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return found


class WhatItLeaves(unittest.TestCase):
    def begin(self, word):
        """A link with programs, some of which are children of children."""
        waits = f"sleep {word} & setsid sleep {word} & echo runs; wait"
        started = subprocess.Popen([LINK, "--far", waits, "--", "sh", "-c", waits], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(started.wait)
        self.addCleanup(started.kill)
        self.addCleanup(started.stdout.close)
        self.assertEqual([started.stdout.readline() for _ in range(2)], ["runs\n"] * 2)
        return started

    def expect_nothing(self, word):
        until = time.monotonic() + 5
        while left := processes_with(word):
            self.assertLess(time.monotonic(), until, f"left: {left}")
            time.sleep(0.02)

    def test_killed__it_leaves_no_process(self):
        word = f"1000.{os.getpid()}1"
        started = self.begin(word)
        until = time.monotonic() + 5
        while len(processes_with(word)) < 9:  # link's own, two shells, four that sleep; one in exec is not seen
            self.assertLess(time.monotonic(), until)
        started.kill()
        started.wait()
        self.expect_nothing(word)

    def test_terminated__it_ends_all_and_says_so(self):
        word = f"1000.{os.getpid()}2"
        started = self.begin(word)
        started.send_signal(signal.SIGTERM)
        self.assertEqual(started.wait(10), 128 + signal.SIGTERM)
        self.expect_nothing(word)

    def test_a_deleted_device__ends_it_with_a_word(self):
        done = subprocess.run([LINK, "--", "sh", "-c", "ip link del link0; sleep 60"], capture_output=True, text=True, timeout=20,
                              check=False)
        self.assertEqual(done.returncode, NO_LINK)
        self.assertIn("relay: No such device", done.stderr)

    def test_status__is_that_of_the_command(self):
        for code in (0, 7):
            self.assertEqual(subprocess.run([LINK, "--quiet", "--", "sh", "-c", f"exit {code}"], check=False).returncode, code)

    def test_words__run_commands_in_the_other_place(self):
        _, _, near = run([], ["sh", "-c", "$LINK_IN_FAR ip -4 -o addr show link0; $LINK_IN_FAR $LINK_IN_NEAR ip -4 -o addr show link0"])
        far, back = near.splitlines()
        self.assertIn("10.78.0.2/24", far)
        self.assertIn("10.78.0.1/24", back)

    def test_hold__tells_others_how_to_get_in(self):
        with subprocess.Popen([LINK, "--hold", "--quiet"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as held:
            _, far = held.stdout.readline().split(), held.stdout.readline().split()
            said = subprocess.run([*far, "ip", "-4", "-o", "addr", "show", "link0"], capture_output=True, text=True, check=False)
            self.assertIn("10.78.0.2/24", said.stdout)
            held.stdin.close()
            self.assertEqual(held.wait(10), 0)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root, to become an ordinary user")
    def test_an_ordinary_user__has_the_same_link(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            copy = pathlib.Path(folder, "link")
            shutil.copy(LINK, copy)
            done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", copy, "--quiet", "--", "sh", "-c",
                                   "id -u; $LINK_IN_FAR ip -4 -o addr show link0"], capture_output=True, text=True, cwd="/",
                                  check=False)
        if done.returncode == NO_LINK:
            self.skipTest(done.stderr)
        self.assertIn("10.78.0.2/24", done.stdout)


if __name__ == "__main__":
    if not shutil.which("ip") or subprocess.run([LINK, "--quiet", "--", "true"], check=False).returncode == NO_LINK:
        print("skipped: no namespaces or no /dev/net/tun here")
        sys.exit(SKIPPED)
    unittest.main()
