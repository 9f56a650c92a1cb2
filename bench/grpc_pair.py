"""A gRPC server, and a client that says how long a call takes and how many messages of 1 KiB come by a stream. Bytes go as
they are: what is measured is what gRPC does with sockets.

  grpc_pair.py serve ADDRESS:PORT
  grpc_pair.py ask ADDRESS:PORT CALLS
"""

import concurrent.futures
import sys
import time

import grpc

MESSAGE = bytes(1024)
A_CALL = 8  # messages of a stream are so many times as many as calls


class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        if details.method == "/bench/echo":
            return grpc.unary_unary_rpc_method_handler(lambda request, context: request)
        return grpc.unary_stream_rpc_method_handler(lambda request, context: (MESSAGE for _ in range(int(request))))


def serve(address):
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=2))
    server.add_generic_rpc_handlers((Handler(),))
    if not server.add_insecure_port(address):
        raise SystemExit(f"no port {address}")
    server.start()
    print("serving", flush=True)
    server.wait_for_termination()


def ask(address, calls):
    with grpc.insecure_channel(address) as channel:
        echo, stream = channel.unary_unary("/bench/echo"), channel.unary_stream("/bench/stream")
        echo(MESSAGE, timeout=20)
        began = time.monotonic()
        for _ in range(calls):
            echo(MESSAGE[:100])
        print(f"unary_us={(time.monotonic() - began) / calls * 1e6:.2f}")
        began = time.monotonic()
        count = sum(1 for _ in stream(str(A_CALL * calls).encode()))
        print(f"stream={count / (time.monotonic() - began):.1f}")


if __name__ == "__main__":
    serve(sys.argv[2]) if sys.argv[1] == "serve" else ask(sys.argv[2], int(sys.argv[3]))
