#!/bin/bash
# musl.sh DIRECTORY: build the libraries, the broker and the command with musl-gcc and Debian's headers, and let two
# programs that are linked to musl too, whose every byte is verified, speak through them. Needs a network namespace.
set -eu
[ "${1:-}" != --help ] || { sed -n 's/^# //p' "$0"; exit 0; }
build=${1:-build-musl}
# musl's own headers first, then Debian's, which has the kernel's and rdma-core's.
export CC=musl-gcc CFLAGS="-idirafter /usr/include -idirafter /usr/include/$(gcc -print-multiarch)"
meson setup "$build" -Dtests=false >/dev/null
ninja -C "$build" >"$build/build.log" 2>&1 || { tail -n 20 "$build/build.log"; exit 1; }
# shellcheck disable=SC2086
$CC $CFLAGS -D_GNU_SOURCE -O2 -o "$build/peer" tests/conformance/peer.c "$build/src/verbs/libibverbs.so.1" -Wl,--allow-shlib-undefined
export LD_LIBRARY_PATH=$build/src/rdmacm VERBENA_STATS=1
for operation in write read send atomic; do
	timeout 60 "$build/peer" -d vb_lo -g 0 server >"$build/server.log" 2>&1 &
	server=$!
	sleep 1
	timeout 60 "$build/peer" -d vb_lo -g 0 -o $operation -n 2000 client 127.0.0.1 2>"$build/client.log" ||
		{ cat "$build/client.log" "$build/server.log"; exit 1; }
	wait $server
done
"$build/verbena" version
