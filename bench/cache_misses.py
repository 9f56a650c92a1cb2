"""Cache misses of the programs that this one starts, where the kernel and the machine count them."""

import ctypes
import os
import platform
import struct

PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
HARDWARE, CACHE_MISSES = 0, 3
INHERIT, EXCLUDE_KERNEL, EXCLUDE_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6


class CacheMisses:
    """reason: why there is no count; empty where there is one."""

    def __init__(self):
        self.descriptor = -1
        number = PERF_EVENT_OPEN.get(platform.machine())
        if number is None:
            self.reason = f"it is not known how to ask {platform.machine()}"
            return
        # type, size, config, sample period, sample type, read format, flags, and what is not used
        asked = struct.pack("IIQQQQQIIQ", HARDWARE, 64, CACHE_MISSES, 0, 0, 0,
                            INHERIT | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR, 0, 0, 0)
        libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = libc.syscall(ctypes.c_long(number), ctypes.c_char_p(asked), 0, -1, -1, ctypes.c_ulong(8))
        self.reason = "" if self.descriptor >= 0 else f"perf_event_open: {os.strerror(ctypes.get_errno())}"

    def total(self):
        """Of this program and of those that it started and that have ended."""
        return struct.unpack("Q", os.read(self.descriptor, 8))[0]
