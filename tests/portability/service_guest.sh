#!/bin/bash
# In the virtual machine, once it is up: root's broker as systemd runs it. Says "right: ..." or "WRONG: ..." a line.
trap 'echo done; systemctl poweroff --no-block' EXIT
right() { echo "right: $1"; }
wrong() { echo "WRONG: $1"; }
claim() { if eval "$2"; then right "$1"; else wrong "$1"; fi; }
talk() {
	runuser -u nobody -- timeout 60 verbena run -- ibv_rc_pingpong -d vb_lo -g 0 -n 100 >/tmp/server.log 2>&1 &
	sleep 3
	runuser -u nobody -- timeout 60 verbena run -- ibv_rc_pingpong -d vb_lo -g 0 -n 100 127.0.0.1 >/tmp/client.log 2>&1 ||
		{ cat /tmp/server.log /tmp/client.log; kill $!; return 1; }
	wait $!
}
state() { systemctl is-active verbena-broker.service; }
main() { systemctl show -P MainPID verbena-broker.service; }

claim "neither unit is enabled by installing" '! systemctl is-enabled -q verbena-broker.socket'
systemctl enable -q --now verbena-broker.socket
claim "nothing runs before a program asks" '[ "$(state)" = inactive ]'
claim "two programs of an ordinary user talk" talk
claim "the service was started by the first" '[ "$(state)" = active ]'
claim "it has no capability and a filter of system calls" \
	'grep -q "^CapEff:.0*$" /proc/$(main)/status && grep -q "^Seccomp:.2$" /proc/$(main)/status'
before=$(main)
kill -9 "$before"
sleep 2
claim "killed, it is started again" '[ "$(state)" = active ] && [ "$(main)" != "$before" ] && talk'
claim "no worker of the one before is left" '[ "$(pgrep -c -x verbena-broker)" = 2 ]'
systemctl restart verbena-broker.service
claim "restarted, it serves" talk
systemctl stop verbena-broker.socket verbena-broker.service
claim "stopped, it is gone" '! pgrep -x verbena-broker >/dev/null'
claim "without it programs start a broker of their own" talk
sleep 2
systemctl start verbena-broker.socket
dpkg --purge verbena >/dev/null 2>&1
claim "purged, nothing is left of it" \
	'! pgrep -x verbena-broker >/dev/null && [ -z "$(find /etc /usr /lib/systemd /var/lib/systemd -name "*verbena*" ! -name "verbena-check*" 2>/dev/null)" ]'
systemd-analyze --version | head -n 1
uname -sr
journalctl -q -b -u verbena-broker.service -p warning --no-pager | tail -n 5
