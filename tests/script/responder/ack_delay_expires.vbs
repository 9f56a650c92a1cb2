# Without data the ack leaves when its time is up, and covers what came meanwhile.
lane ack_delay=20us
qp rc
 +0us < rc.write_only psn=200 len=8 ackreq
+10us < rc.write_only psn=201 len=8 ackreq
+10us > rc.ack psn=201 msn=2
 +0us idle
