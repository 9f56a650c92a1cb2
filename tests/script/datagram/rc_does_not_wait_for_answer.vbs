# RC has a window of its own from the first packet, whoever the peer may be.
peer asked
qp rc
 +0us post send len=100 wr=1
 +0us > rc.send_only psn=100 len=100 ackreq
 +10us < rc.ack psn=100 credits=31 msn=1
 +0us complete wr=1 success
 +0us idle
