# The tail is probed as an RC tail is.
qp xrc_send timeout=14
 +0us post send len=8 srqn=7 wr=1
 +0us > xrc.send_only psn=100 len=8 ackreq
+1ms > xrc.send_only psn=100 len=8 ackreq
+10us < xrc.ack psn=100
 +0us complete wr=1 success
 +0us idle
 +0us counter probes=1 timeouts=0
