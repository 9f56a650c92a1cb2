# Whoever drives the lane is about to sleep: held acks leave now.
lane ack_delay=20us
qp rc
 +0us < rc.write_only psn=200 len=8 ackreq
 +5us flush_acks
 +0us > rc.ack psn=200 msn=1
 +5us < rc.write_only psn=201 len=8 ackreq
+20us > rc.ack psn=201 msn=2
