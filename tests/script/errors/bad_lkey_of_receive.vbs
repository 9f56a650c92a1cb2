# The receive's own scatter entry is wrong: 0x63 to the peer, LOC_PROT_ERR here.
qp rc
 +0us recv len=64 lkey=bad wr=1
 +0us < rc.send_only psn=200 len=8 ackreq dropped takes_recv
 +0us > rc.ack psn=200 nak=remote_operation
 +0us complete recv wr=1 loc_prot_err
 +0us state err cause=recv_sge
