# A second RNR NAK during the wait changes nothing, and counts no retry.
qp rc rnr_retry=1
 +0us post send len=8 wr=1
 +0us > rc.send_only psn=100 len=8 ackreq
 +1us < rc.ack psn=100 rnr=12
 +1us < rc.ack psn=100 rnr=12
+639us > rc.send_only psn=100 len=8 ackreq
 +1us < rc.ack psn=100
 +0us complete wr=1 success
