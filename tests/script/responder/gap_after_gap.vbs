# Once the missing packet has arrived a new gap is a new NAK.
qp rc
 +0us < rc.write_only psn=201 len=8 dropped
 +0us > rc.ack psn=200 nak=psn_sequence
 +0us < rc.write_only psn=200 len=8
 +0us < rc.write_only psn=202 len=8 dropped
 +0us > rc.ack psn=201 nak=psn_sequence
 +0us counter out_of_order=2 nak_sent=2
