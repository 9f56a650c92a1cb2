# Of no memory do we know that it survives a loss of power: no region allows it.
mr seen access=lw,flush
qp rc access=all,flush
 +0us < rc.flush psn=200 va=seen rkey=seen dma=8 feth=0x02 dropped
 +0us > rc.ack psn=200 nak=remote_access
 +0us event qp_access_err
 +0us state err cause=remote_bad_rkey
