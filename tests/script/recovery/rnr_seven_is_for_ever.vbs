# rnr_retry 7 never gives up.
qp rc rnr_retry=7
 +0us post send len=8 wr=1
 +0us > rc.send_only psn=100 len=8 ackreq
 +1us < rc.ack psn=100 rnr=1
+10us > rc.send_only psn=100 len=8 ackreq
 +1us < rc.ack psn=100 rnr=1
+10us > rc.send_only psn=100 len=8 ackreq
 +1us < rc.ack psn=100 rnr=1
+10us > rc.send_only psn=100 len=8 ackreq
 +1us < rc.ack psn=100 rnr=1
+10us > rc.send_only psn=100 len=8 ackreq
 +1us < rc.ack psn=100 rnr=1
+10us > rc.send_only psn=100 len=8 ackreq
 +1us < rc.ack psn=100 rnr=1
+10us > rc.send_only psn=100 len=8 ackreq
 +1us < rc.ack psn=100 rnr=1
+10us > rc.send_only psn=100 len=8 ackreq
 +1us < rc.ack psn=100 rnr=1
+10us > rc.send_only psn=100 len=8 ackreq
 +1us < rc.ack psn=100 rnr=1
+10us > rc.send_only psn=100 len=8 ackreq
 +1us < rc.ack psn=100
 +0us complete wr=1 success
