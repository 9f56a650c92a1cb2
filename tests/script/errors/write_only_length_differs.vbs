# Also in one packet.
qp rc
 +0us < rc.write_only psn=200 len=8 dma=9 ackreq dropped
 +0us > rc.ack psn=200 nak=invalid_request
 +0us event qp_req_err
 +0us state err cause=remote_bad_request
