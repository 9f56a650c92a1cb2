# A completion queue that overruns says so, and the QPs that use it die.
cq small size=2 unpolled
qp rc cq=small
 +0us post write len=8 wr=1
 +0us > rc.write_only psn=100 len=8 ackreq
 +0us post write len=8 wr=2
 +0us > rc.write_only psn=101 len=8 ackreq
 +0us post write len=8 wr=3
 +0us > rc.write_only psn=102 len=8 ackreq
 +5us < rc.ack psn=102
 +0us event cq_err
 +0us event qp_fatal
 +0us state err cause=cq_overrun
 +0us poll cq=small wr=1 success
 +0us poll cq=small wr=2 success
 +0us poll cq=small overrun
