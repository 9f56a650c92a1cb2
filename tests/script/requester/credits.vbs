# Once the peer sends credits, SENDs beyond them wait; beyond the limit one goes alone, as a probe. WRITEs are free.
qp rc
 +0us post send len=8 wr=1
 +0us > rc.send_only psn=100 len=8 ackreq
+10us < rc.ack psn=100 credits=1 msn=1
 +0us complete wr=1 success
 +0us post send len=8 wr=2
 +0us > rc.send_only psn=101 len=8 ackreq
 +0us post send len=8 wr=3
 +0us post write len=8 wr=4
+10us < rc.ack psn=101 credits=0 msn=2
 +0us complete wr=2 success
 +0us > rc.send_only psn=102 len=8 ackreq
 +0us > rc.write_only psn=103 len=8 ackreq
+10us < rc.ack psn=103 credits=31
 +0us complete wr=3 success
 +0us complete wr=4 success
