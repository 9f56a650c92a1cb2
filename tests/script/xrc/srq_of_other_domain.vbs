# An SRQ of another XRC domain is out of reach, for one-sided requests too.
xrc_srq red other_domain
qp xrc_recv
 +0us recv len=64 wr=1 srqn=red
 +0us < xrc.write_only psn=200 len=8 srqn=red ackreq dropped
 +0us > xrc.ack psn=200 nak=invalid_request
 +0us event qp_req_err
 +0us state err cause=remote_bad_srq
