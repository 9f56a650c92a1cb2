# A gap is answered by one NAK with the PSN that is missing; what follows is dropped until it arrives.
qp rc
 +0us < rc.write_only psn=200 len=8 ackreq
 +0us > rc.ack psn=200
 +0us < rc.write_only psn=202 len=8 va=remote+64 ackreq dropped
 +0us > rc.ack psn=201 nak=psn_sequence
 +0us < rc.write_only psn=203 len=8 va=remote+128 ackreq dropped
 +0us < rc.write_only psn=202 len=8 va=remote+64 ackreq dropped
+10us < rc.write_only psn=201 len=8 va=remote+32 ackreq
 +0us > rc.ack psn=201
 +0us < rc.write_only psn=202 len=8 va=remote+64 ackreq
 +0us > rc.ack psn=202
 +0us counter out_of_order=3 nak_sent=1 drop_out_of_order=2
