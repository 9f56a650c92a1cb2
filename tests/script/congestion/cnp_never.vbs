# No CNPs: others tell of congestion.
lane cnp=never
qp rc
 +0us < rc.write_only psn=200 len=8 ackreq ce
 +0us > rc.ack psn=200
 +0us counter ce_received=1 cnp_sent=0
