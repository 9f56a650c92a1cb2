# A three-packet WRITE loses its middle: one NAK, and the requester goes back exactly there.
qp rc
 +0us post write len=2500 wr=7
 +0us > rc.write_first  psn=100 len=1024
 +0us > rc.write_middle psn=101 len=1024
 +0us > rc.write_last   psn=102 len=452 ackreq
+10us < rc.ack psn=101 nak=psn_sequence
 +0us > rc.write_middle psn=101 len=1024
 +0us > rc.write_last   psn=102 len=452 ackreq
+10us < rc.ack psn=102
 +0us complete wr=7 success
 +0us counter retransmitted=2 nak_received=1
