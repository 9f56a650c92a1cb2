# Neither visibility nor persistence is asked for.
mr seen access=lw,flush
qp rc access=all,flush
 +0us < rc.flush psn=200 va=seen rkey=seen dma=8 feth=0x00 dropped
 +0us > rc.ack psn=200 nak=invalid_request
 +0us event qp_req_err
 +0us state err cause=remote_bad_request
