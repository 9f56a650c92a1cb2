# The same for an atomic; the peer replays it.
qp rc
 +0us post fetch_add add=1 wr=1
 +0us > rc.fetch_add psn=100 ackreq
 +0us post send len=8 from=local+64 wr=2
 +0us > rc.send_only psn=101 len=8 ackreq
+10us < rc.ack psn=101
 +0us > rc.fetch_add psn=100 ackreq
 +0us > rc.send_only psn=101 len=8 ackreq
+10us < rc.atomic_ack psn=100 result=77
 +0us complete wr=1 success
 +0us < rc.ack psn=101
 +0us complete wr=2 success
