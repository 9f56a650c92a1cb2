# timeout 0 switches the ack timer off: the QP waits, and asks now and then.
qp rc timeout=0 retry=0
 +0us post send len=8 wr=1
 +0us > rc.send_only psn=100 len=8 ackreq
+1ms > rc.send_only psn=100 len=8 ackreq
+1ms..4ms > rc.send_only psn=100 len=8 ackreq
+9us < rc.ack psn=100
 +0us complete wr=1 success
 +0us idle
