# Probes use up no retry: with retry_cnt 0 a lost packet is still made good.
qp rc retry=0 timeout=20
 +0us post send len=8 wr=1
 +0us > rc.send_only psn=100 len=8 ackreq
+1ms > rc.send_only psn=100 len=8 ackreq
+1ms..4ms > rc.send_only psn=100 len=8 ackreq
 +5us < rc.ack psn=100
 +0us complete wr=1 success
