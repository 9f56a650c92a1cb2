# Acks that arrive twice complete nothing twice.
qp rc
 +0us post send len=8 wr=1
 +0us > rc.send_only psn=100 len=8 ackreq
 +0us post send len=8 wr=2
 +0us > rc.send_only psn=101 len=8 ackreq
 +5us < rc.ack psn=100
 +0us complete wr=1 success
 +0us < rc.ack psn=100
 +5us < rc.ack psn=101
 +0us complete wr=2 success
 +0us < rc.ack psn=101
 +0us idle
