"""Writes Chakra traces for tests: protobuf messages, each with its length before it."""

COMPUTE, COLLECTIVE = 4, 7      # NodeType
INT64, BOOL = 9, 27             # AttributeProto's fields
HEAD = b"\x07\x0A\x050.0.4"     # GlobalMetadata


def varint(value):
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(written + bytes([value]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def node(number, kind, after=(), us=0, name="n", **attributes):
    written = field(1, number) + field(2, name.encode()) + field(3, kind)
    if after:
        written += field(5, b"".join(varint(other) for other in after))
    if us:
        written += field(7, us)
    for attribute, value in attributes.items():
        written += field(10, field(1, attribute.encode()) + field(BOOL if isinstance(value, bool) else INT64, int(value)))
    return varint(len(written)) + written
