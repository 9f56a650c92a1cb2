#!/usr/bin/env python3
"""raw_test PROGRAM: udp_raw says its figures on loopback, loses nothing there, and its server ends with its client."""

import re
import socket
import subprocess
import sys
import unittest


class Raw(unittest.TestCase):
    program = None

    def run_test(self, test, *amounts):
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as free:
            free.bind(("::", 0))
            port = str(free.getsockname()[1])
        with subprocess.Popen([self.program, "serve", port], stdout=subprocess.PIPE, text=True) as server:
            try:
                self.assertEqual(server.stdout.readline(), "serving\n")
                done = subprocess.run([self.program, test, "127.0.0.1", port, *map(str, amounts)], stdout=subprocess.PIPE, text=True,
                                      timeout=60, check=False)
                self.assertEqual(server.wait(10), 0)
            finally:
                server.kill()
        self.assertEqual(done.returncode, 0)
        return dict(re.findall(r"(\w+)=([\d.]+)", done.stdout))

    def test_stream__has_a_rate_and_no_losses(self):
        for payload in ([], [1408], [4096]):
            said = self.run_test("stream", 100, *payload)
            self.assertGreater(float(said["gbps"]), 0)
            self.assertEqual(said["lost"], "0")

    def test_ping_pong__has_its_percentiles_in_order(self):
        said = self.run_test("pingpong", 200)
        self.assertGreater(float(said["p50_us"]), 0)
        self.assertGreaterEqual(float(said["p99_us"]), float(said["p50_us"]))

    def test_other_words__are_refused(self):
        for words in ([], ["serve"], ["stream", "127.0.0.1", "1"], ["sing", "127.0.0.1", "1", "1"],
                      ["stream", "127.0.0.1", "1", "1", "1023"], ["stream", "127.0.0.1", "1", "1", "8449"]):
            self.assertEqual(subprocess.run([self.program, *words], stderr=subprocess.DEVNULL, check=False).returncode, 2)


if __name__ == "__main__":
    Raw.program = sys.argv.pop()
    unittest.main()
