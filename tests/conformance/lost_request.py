"""A listener with a full backlog, and a stranger who asks it twice with one QP number: the second request ends the
first, which waits to be accepted. The listener goes on. Run with sockets that are rsockets."""

import ctypes
import socket
import time

ADDRESS = "127.0.0.1"
QPN = 0x4242
rdmacm = ctypes.CDLL("librdmacm.so.1", use_errno=True)


class ConnParam(ctypes.Structure):
    _fields_ = [("private_data", ctypes.c_void_p), ("private_data_len", ctypes.c_uint8)] + [
        (name, ctypes.c_uint8) for name in ("responder_resources", "initiator_depth", "flow_control", "retry_count",
                                            "rnr_retry_count", "srq")] + [("qp_num", ctypes.c_uint32)]


def check(result):
    if result:
        raise OSError(ctypes.get_errno(), "librdmacm")


def pass_event(channel):
    event = ctypes.c_void_p()
    check(rdmacm.rdma_get_cm_event(channel, ctypes.byref(event)))
    check(rdmacm.rdma_ack_cm_event(event))


def ask(channel, port):
    """A request with an rsocket's greeting."""
    identifier = ctypes.c_void_p()
    address = socket.AF_INET.to_bytes(2, "little") + port.to_bytes(2, "big") + socket.inet_aton(ADDRESS) + bytes(8)
    check(rdmacm.rdma_create_id(channel, ctypes.byref(identifier), None, 0x0106))
    check(rdmacm.rdma_resolve_addr(identifier, None, address, 2000))
    pass_event(channel)
    check(rdmacm.rdma_resolve_route(identifier, 2000))
    pass_event(channel)
    greeting = bytearray(40)
    greeting[0], greeting[3], greeting[23], greeting[37] = 1, 100, 2, 1
    data = (ctypes.c_char * len(greeting)).from_buffer(greeting)
    param = ConnParam(ctypes.addressof(data), len(greeting), retry_count=7, rnr_retry_count=7, qp_num=QPN)
    check(rdmacm.rdma_connect(identifier, ctypes.byref(param)))
    time.sleep(0.2)


listener = socket.socket()
listener.bind((ADDRESS, 0))
listener.listen(1)
port = listener.getsockname()[1]
first = socket.create_connection((ADDRESS, port))
rdmacm.rdma_create_event_channel.restype = ctypes.c_void_p
channel = ctypes.c_void_p(rdmacm.rdma_create_event_channel())
ask(channel, port)
ask(channel, port)
assert listener.accept()[1] == first.getsockname()
second = socket.create_connection((ADDRESS, port))
assert listener.accept()[1] == second.getsockname()
