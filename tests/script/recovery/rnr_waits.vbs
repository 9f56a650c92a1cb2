# RNR NAK: the request goes again when the peer's timer has run out, not before; what is before it is acknowledged.
qp rc
 +0us post write len=8 wr=1
 +0us > rc.write_only psn=100 len=8 ackreq
 +0us post send len=8 wr=2
 +0us > rc.send_only psn=101 len=8 ackreq
 +0us post write len=8 wr=3
 +0us > rc.write_only psn=102 len=8 ackreq
+10us < rc.ack psn=101 rnr=14
 +0us complete wr=1 success
 +0us deadline at=1.28ms
+1.28ms > rc.send_only psn=101 len=8 ackreq
 +0us > rc.write_only psn=102 len=8 ackreq
 +5us < rc.ack psn=102
 +0us complete wr=2 success
 +0us complete wr=3 success
 +0us idle
 +0us counter rnr_received=1
