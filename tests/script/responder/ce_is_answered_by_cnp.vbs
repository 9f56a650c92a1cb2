# A packet that carries Congestion Experienced is answered by a CNP, not more often than every 50 us.
qp rc
 +0us < rc.write_only psn=200 len=8 ackreq ce
 +0us > cnp
 +0us > rc.ack psn=200
+10us < rc.write_only psn=201 len=8 ackreq ce
 +0us > rc.ack psn=201
+50us < rc.write_only psn=202 len=8 ackreq ce
 +0us > cnp
 +0us > rc.ack psn=202
 +0us counter ce_received=3 cnp_sent=2
