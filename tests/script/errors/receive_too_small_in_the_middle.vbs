# The packet that does not fit any more is the one that is refused.
qp rc
 +0us recv len=1500 wr=1
 +0us < rc.send_first  psn=200 len=1024
 +0us < rc.send_middle psn=201 len=1024 dropped
 +0us > rc.ack psn=201 nak=invalid_request
 +0us complete recv wr=1 loc_len_err
 +0us state err cause=recv_too_short psn=201
