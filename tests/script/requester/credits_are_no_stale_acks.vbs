# An ACK that brings credits alone has been used; the same once more says nothing.
qp rc
 +0us post send len=8 wr=1
 +0us > rc.send_only psn=100 len=8 ackreq
 +9us < rc.ack psn=100 credits=1 msn=1
 +0us complete wr=1 success
 +5us < rc.ack psn=100 credits=2 msn=1
 +0us counter drop_stale_ack=0
 +5us < rc.ack psn=100 credits=2 msn=1
 +0us counter drop_stale_ack=1
