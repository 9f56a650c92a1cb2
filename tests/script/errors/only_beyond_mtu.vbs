# Only carries at most the path MTU.
qp rc mtu=256
 +0us recv len=4096 wr=1
 +0us < rc.send_only psn=200 len=257 ackreq dropped
 +0us > rc.ack psn=200 nak=invalid_request
 +0us complete recv wr=1 wr_flush_err
 +0us event qp_req_err
 +0us state err cause=remote_bad_request
