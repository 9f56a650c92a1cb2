# A QP with a shared queue that goes to ERR flushes nothing of it and says that it takes no more.
srq max=8
qp rc srq
 +0us recv srq len=100 wr=1
 +0us < rc.write_only psn=200 len=8 rkey=bad ackreq dropped
 +0us > rc.ack psn=200 nak=remote_access
 +0us event qp_access_err
 +0us event last_wqe
 +0us state err cause=remote_bad_rkey
