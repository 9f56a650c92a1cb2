"""What a neighbour would need to know to end others' connections: their communication IDs and queue pair numbers, read
from the capture of one that takes part (VERBENA_PCAP). So the hostile program need not guess, and tests what protects
beside the numbers."""

import struct

IPV4, UDP, BTH, DETH = 20, 8, 12, 8
MAD = IPV4 + UDP + BTH + DETH
CLASS_CM, ATTRIBUTE_REP = 0x07, 0x13


def packets(capture):
    """The IP packets of a capture of LINKTYPE_RAW, as far as it is whole."""
    at = 24
    while at + 16 <= len(capture):
        length, = struct.unpack_from("<I", capture, at + 8)
        if at + 16 + length > len(capture):
            return
        yield capture[at + 16:at + 16 + length]
        at += 16 + length


def connections(capture):
    """(communication ID here, there, queue pair number there) of each IPv4 REP in the capture of the active end."""
    found = {}
    for packet in packets(capture):
        mad = packet[MAD:]
        if len(packet) < MAD + 256 or packet[0] != 0x45 or packet[IPV4 + UDP + 5:IPV4 + UDP + 8] != b"\0\0\1":
            continue
        if mad[1] == CLASS_CM and struct.unpack_from(">H", mad, 16)[0] == ATTRIBUTE_REP:
            there, here = struct.unpack_from(">II", mad, 24)
            found[here] = (here, there, int.from_bytes(mad[36:39], "big"))
    return list(found.values())
