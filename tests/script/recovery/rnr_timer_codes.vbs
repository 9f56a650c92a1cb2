# The timer codes are a table: 1 is 10 us, 0 is 655.36 ms.
qp rc
 +0us post send len=8 wr=1
 +0us > rc.send_only psn=100 len=8 ackreq
+10us < rc.ack psn=100 rnr=1
+10us > rc.send_only psn=100 len=8 ackreq
+10us < rc.ack psn=100 rnr=0
+655.36ms > rc.send_only psn=100 len=8 ackreq
+10us < rc.ack psn=100 rnr=25
+61.44ms > rc.send_only psn=100 len=8 ackreq
+10us < rc.ack psn=100 rnr=31
+491.52ms > rc.send_only psn=100 len=8 ackreq
+10us < rc.ack psn=100
 +0us complete wr=1 success
