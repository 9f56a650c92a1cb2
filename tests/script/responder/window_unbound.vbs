# A type-1 window bound with length zero opens nothing.
mw w type=1
qp rc
 +0us post bind mw=w at=remote len=256 access=rw wr=1
 +0us complete wr=1 success
 +0us post bind mw=w at=remote len=0 wr=2
 +0us complete wr=2 success
 +0us < rc.write_only psn=200 len=8 va=remote rkey=w ackreq dropped
 +0us > rc.ack psn=200 nak=remote_access
 +0us event qp_access_err
 +0us state err cause=remote_bad_rkey
