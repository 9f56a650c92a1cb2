# A SEND longer than the receive: 0x61, and the receive says LOC_LEN_ERR; the others are flushed.
qp rc
 +0us recv len=7 wr=1
 +0us recv len=64 wr=2
 +0us < rc.send_only psn=200 len=8 ackreq dropped takes_recv
 +0us > rc.ack psn=200 nak=invalid_request
 +0us complete recv wr=1 loc_len_err
 +0us complete recv wr=2 wr_flush_err
 +0us state err cause=recv_too_short
