# A completion queue that one QP overran takes no completion of another: that one dies too, before it acknowledges what its
# program will never hear of.
cq small size=1 unpolled
qp rc cq=small name=a
qp rc cq=small name=b
 +0us recv qp=b len=8 wr=9
 +0us post write len=8 wr=1 qp=a
 +0us > rc.write_only psn=100 len=8 ackreq qp=a
 +0us post write len=8 wr=2 qp=a
 +0us > rc.write_only psn=101 len=8 ackreq qp=a
 +5us < rc.ack psn=101 qp=a
 +0us event cq_err
 +0us event qp_fatal qp=a
 +0us state err cause=cq_overrun qp=a
 +5us < rc.send_only psn=200 len=8 ackreq qp=b
 +0us event qp_fatal qp=b
 +0us state err cause=cq_overrun qp=b
 +0us poll cq=small wr=1 success qp=a
 +0us poll cq=small overrun
