# No receive posted: RNR NAK with the QP's timer code; what follows is dropped; the same PSN again, with a receive, goes.
qp rc min_rnr=14
 +0us < rc.send_only psn=200 len=8 ackreq dropped
 +0us > rc.ack psn=200 rnr=14 msn=0
 +0us < rc.write_only psn=201 len=8 ackreq dropped
 +0us recv len=8 wr=1
+1.28ms < rc.send_only psn=200 len=8 ackreq
 +0us > rc.ack psn=200 msn=1
 +0us complete recv wr=1 success
 +0us < rc.write_only psn=201 len=8 ackreq
 +0us > rc.ack psn=201 msn=2
 +0us counter rnr_sent=1
