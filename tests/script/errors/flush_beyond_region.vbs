# Of a range every byte must lie in the region.
mr seen size=4096 access=lw,flush
qp rc access=all,flush
 +0us < rc.flush psn=200 va=seen+8 rkey=seen dma=4096 dropped
 +0us > rc.ack psn=200 nak=remote_access
 +0us event qp_access_err
 +0us state err cause=remote_bad_rkey
