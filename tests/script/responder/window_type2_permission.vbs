# A window bound for reading cannot be written, though its region can.
mw w type=2
qp rc
 +0us post bind mw=w at=remote+4096 len=256 access=rr wr=1
 +0us complete wr=1 success
 +0us < rc.write_only psn=200 len=8 va=remote+4096 rkey=w ackreq dropped
 +0us > rc.ack psn=200 nak=remote_access
 +0us event qp_access_err
 +0us state err cause=remote_bad_rkey
