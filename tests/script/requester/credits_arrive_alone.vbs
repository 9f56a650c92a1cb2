# An ACK of nothing new that brings credits lets the waiting SEND go.
qp rc
 +0us post send len=8 wr=1
 +0us > rc.send_only psn=100 len=8 ackreq
 +9us < rc.ack psn=100 credits=1 msn=1
 +0us complete wr=1 success
 +0us post send len=8 wr=2
 +0us > rc.send_only psn=101 len=8 ackreq
 +0us post send len=8 wr=3
 +5us < rc.ack psn=100 credits=2 msn=1
 +0us > rc.send_only psn=102 len=8 ackreq
 +5us < rc.ack psn=102 credits=0 msn=3
 +0us complete wr=2 success
 +0us complete wr=3 success
