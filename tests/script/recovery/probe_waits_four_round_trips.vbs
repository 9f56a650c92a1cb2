# On a long path the probe waits for four round trips.
qp rc
 +0us post send len=8 wr=1
 +0us > rc.send_only psn=100 len=8 ackreq
+500us < rc.ack psn=100
 +0us complete wr=1 success
 +0us post send len=8 wr=2
 +0us > rc.send_only psn=101 len=8 ackreq
+2ms > rc.send_only psn=101 len=8 ackreq
 +5us < rc.ack psn=101
 +0us complete wr=2 success
