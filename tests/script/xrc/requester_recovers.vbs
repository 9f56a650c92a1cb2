# What goes again names the SRQ that it named before: after a gap, a timeout, a receiver that was not ready.
qp xrc_send timeout=5
 +0us post send len=2500 srqn=7 wr=1
 +0us > xrc.send_first  psn=100 len=1024
 +0us > xrc.send_middle psn=101 len=1024
 +0us > xrc.send_last   psn=102 len=452 ackreq
 +0us post write len=8 srqn=8 wr=2
 +0us > xrc.write_only psn=103 len=8 ackreq
+10us < xrc.ack psn=101 nak=psn_sequence
 +0us > xrc.send_middle psn=101 len=1024
 +0us > xrc.send_last   psn=102 len=452 ackreq
 +0us > xrc.write_only  psn=103 len=8 ackreq
+131.072us > xrc.send_middle psn=101 len=1024
 +0us > xrc.send_last   psn=102 len=452 ackreq
 +0us > xrc.write_only  psn=103 len=8 ackreq
 +5us < xrc.ack psn=103
 +0us complete wr=1 success
 +0us complete wr=2 success
 +0us post send len=8 srqn=9 wr=3
 +0us > xrc.send_only psn=104 len=8 ackreq
 +5us < xrc.ack psn=104 rnr=14
+1.28ms > xrc.send_only psn=104 len=8 ackreq
 +5us < xrc.ack psn=104
 +0us complete wr=3 success
 +0us idle
 +0us counter timeouts=1 rnr_received=1 nak_received=1
