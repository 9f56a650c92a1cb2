# The error of a WRITE with immediate is carried by the receive, so there is no event.
qp rc
 +0us recv len=8 wr=1
 +0us < rc.write_only_imm psn=200 len=8 rkey=bad imm=1 ackreq dropped takes_recv
 +0us > rc.ack psn=200 nak=remote_access
 +0us complete recv wr=1 loc_access_err
 +0us state err cause=remote_bad_rkey
