# The RETH's whole range is checked before the first byte lands.
qp rc
 +0us < rc.write_first psn=200 len=1024 dma=2048 va=remote+64000 dropped
 +0us > rc.ack psn=200 nak=remote_access
 +0us event qp_access_err
 +0us state err cause=remote_bad_rkey
