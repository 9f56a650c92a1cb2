# A SEND does not continue a WRITE.
qp rc
 +0us recv len=4096 wr=1
 +0us < rc.write_first psn=200 len=1024 dma=3000
 +0us < rc.send_middle psn=201 len=1024 dropped
 +0us > rc.ack psn=201 nak=invalid_request
 +0us complete recv wr=1 wr_flush_err
 +0us event qp_req_err
 +0us state err cause=remote_bad_request
