# LOCAL_INV waits for all work before it, and completes after it.
mw w type=2
qp rc
 +0us post bind mw=w len=512 wr=1
 +0us complete wr=1 success
 +0us post write len=8 wr=2
 +0us > rc.write_only psn=100 len=8 ackreq
 +0us post local_inv inv=w wr=3
 +0us post write len=8 wr=4
 +5us < rc.ack psn=100
 +0us complete wr=2 success
 +0us complete wr=3 success
 +0us > rc.write_only psn=101 len=8 ackreq
 +5us < rc.write_only psn=200 len=8 rkey=w dropped ackreq
 +0us > rc.ack psn=200 nak=remote_access
 +0us event qp_access_err
 +0us complete wr=4 wr_flush_err
 +0us state err cause=remote_bad_rkey
