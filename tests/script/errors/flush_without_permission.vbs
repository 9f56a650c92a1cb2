# The region does not allow it.
qp rc access=all,flush
 +0us < rc.flush psn=200 dma=8 dropped
 +0us > rc.ack psn=200 nak=remote_access
 +0us event qp_access_err
 +0us state err cause=remote_bad_rkey
