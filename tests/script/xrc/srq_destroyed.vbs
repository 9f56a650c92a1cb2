# What was done before is remembered, what comes after is refused: a duplicate SEND is acknowledged, a READ asked for again
# is not answered, for its domain is not the QP's any more.
xrc_srq red
xrc_srq blue
qp xrc_recv
 +0us recv len=64 wr=1 srqn=red
 +0us < xrc.send_only psn=200 len=8 srqn=red ackreq
 +0us > xrc.ack psn=200
 +0us complete recv wr=1 success
 +0us < xrc.read_request psn=201 dma=16 srqn=red
 +0us > xrc.read_response_only psn=201 len=16
 +0us destroy_srq srqn=red
 +1us < xrc.send_only psn=200 len=8 srqn=red ackreq dup
 +0us > xrc.ack psn=201
 +1us < xrc.read_request psn=201 dma=16 srqn=red dup
 +0us counter drop_duplicate=1
 +1us < xrc.write_only psn=202 len=8 srqn=blue ackreq
 +0us > xrc.ack psn=202
 +1us < xrc.write_only psn=203 len=8 srqn=red ackreq dropped
 +0us > xrc.ack psn=203 nak=invalid_request
 +0us event qp_req_err
 +0us state err cause=remote_bad_srq
