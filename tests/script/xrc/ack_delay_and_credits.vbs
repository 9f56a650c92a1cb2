# Acks are held back as RC's are; receives that many QPs share are no credits of one.
nic credits
lane ack_delay=20us
xrc_srq red
qp xrc_recv
 +0us < xrc.write_only psn=200 len=8 srqn=red ackreq
 +0us deadline at=20us
+20us > xrc.ack psn=200 credits=31
 +0us recv len=64 wr=1 srqn=red
 +0us < xrc.send_only psn=201 len=8 srqn=red ackreq
 +0us complete recv wr=1 success
+20us > xrc.ack psn=201 credits=31
