# Receives of a shared queue cannot be promised to one QP.
nic credits
srq max=8
qp rc srq
 +0us recv srq len=8 wr=1
 +0us < rc.write_only psn=200 len=8 ackreq
 +0us > rc.ack psn=200 credits=31
