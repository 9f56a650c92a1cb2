#!/usr/bin/env python3
"""units_test BROKER SERVICE SOCKET PROTOCOL_H: systemd's units name the sockets that programs look for, and systemd
understands them."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest


class Units(unittest.TestCase):
    broker = service = socket = protocol = None

    def test_socket__has_the_names_of_the_protocol(self):
        header = self.protocol.read_text()
        names = dict(re.findall(r'#define VB_BROKER_(\w+)\s+(.*)', header))
        number = re.search(r'"(\w+)"', names["PROTOCOL"])[1]
        wanted = [f"@verbena-broker.{number}", "@verbena-broker"]
        self.assertIn('"verbena-broker." VB_BROKER_PROTOCOL', names["NAME"])
        self.assertIn('"verbena-broker"', names["ANY_VERSION"])
        self.assertEqual(re.findall(r"^ListenSequentialPacket=(\S+)$", self.socket.read_text(), re.M), wanted)

    def test_units__are_understood(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze is not installed")
        with tempfile.TemporaryDirectory() as scratch:
            service = pathlib.Path(scratch, "verbena-broker.service")
            service.write_text(re.sub(r"^ExecStart=\S+", f"ExecStart={self.broker}", self.service.read_text(), flags=re.M))
            socket = pathlib.Path(shutil.copy(self.socket, scratch))
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", service, socket], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        ours = [line for line in done.stdout.splitlines() if "verbena" in line]
        self.assertEqual((done.returncode, ours), (0, []))


if __name__ == "__main__":
    Units.broker, Units.service, Units.socket, Units.protocol = (pathlib.Path(name).resolve() for name in sys.argv[1:])
    unittest.main(argv=sys.argv[:1])
