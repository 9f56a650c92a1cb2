# The ack is lost: after a millisecond of silence the newest packet goes again, and the ack of the duplicate completes it.
qp rc
 +0us post send len=8 wr=1
 +0us > rc.send_only psn=100 len=8 ackreq
+1ms > rc.send_only psn=100 len=8 ackreq
 +5us < rc.ack psn=100
 +0us complete wr=1 success
 +0us idle
 +0us counter probes=1 timeouts=0
