# A duplicate SEND consumes no receive.
qp rc
 +0us recv len=8 wr=1
 +0us recv len=8 at=local+64 wr=2
 +0us < rc.send_only psn=200 len=8 ackreq
 +0us > rc.ack psn=200 msn=1
 +0us complete recv wr=1 success
 +5us < rc.send_only psn=200 len=8 fill=3 ackreq dropped
 +0us > rc.ack psn=200 msn=1
 +5us < rc.send_only psn=201 len=8 ackreq
 +0us > rc.ack psn=201 msn=2
 +0us complete recv wr=2 success
