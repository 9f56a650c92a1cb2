# The payload has landed, the key cannot be invalidated: the connection breaks, the receive is in error.
qp rc
 +0us recv len=64 wr=1
 +0us < rc.send_only_inv psn=200 len=8 inv=0x4711 ackreq
 +0us > rc.ack psn=200 nak=remote_access
 +0us complete recv wr=1 loc_access_err
 +0us state err cause=remote_bad_rkey
