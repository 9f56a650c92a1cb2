# No receive in the SRQ: RNR. The peer may name another when it tries again.
xrc_srq red
xrc_srq blue
qp xrc_recv min_rnr=5
 +0us < xrc.send_only psn=200 len=8 srqn=red ackreq dropped
 +0us > xrc.ack psn=200 rnr=5
 +0us recv len=64 at=local wr=1 srqn=red
 +1ms < xrc.send_only psn=200 len=8 srqn=red ackreq
 +0us > xrc.ack psn=200
 +0us complete recv wr=1 success
 +0us < xrc.write_only_imm psn=201 len=8 srqn=red imm=1 ackreq dropped
 +0us > xrc.ack psn=201 rnr=5
 +0us recv len=0 wr=2 srqn=blue
 +1ms < xrc.write_only_imm psn=201 len=8 srqn=blue imm=1 ackreq
 +0us > xrc.ack psn=201
 +0us complete recv write_imm wr=2 success imm=1
 +0us counter rnr_sent=2
