# Two QPs take receives from one shared queue; the limit event comes once, when fewer than the limit are left.
srq max=8 limit=2
qp rc name=a srq
qp rc name=b srq dest_qpn=0x333
 +0us recv srq len=100 at=local wr=1
 +0us recv srq len=100 at=local+128 wr=2
 +0us recv srq len=100 at=local+256 wr=3
 +0us < rc.send_only psn=200 len=64 qp=a ackreq
 +0us > rc.ack psn=200 qp=a
 +0us complete recv wr=1 success qp=a
 +0us < rc.send_only psn=200 len=100 qp=b ackreq
 +0us event srq_limit
 +0us > rc.ack psn=200 qp=b
 +0us complete recv wr=2 success qp=b
 +0us < rc.send_only psn=201 len=3 qp=a ackreq
 +0us > rc.ack psn=201 qp=a
 +0us complete recv wr=3 success qp=a
 +0us < rc.send_only psn=201 len=3 qp=b ackreq dropped
 +0us > rc.ack psn=201 rnr=12 qp=b
 +0us recv srq len=64 at=local+512 wr=4
 +0us srq_limit limit=1
+1ms < rc.send_only psn=201 len=3 qp=b ackreq
 +0us event srq_limit
 +0us > rc.ack psn=201 qp=b
 +0us complete recv wr=4 success qp=b
