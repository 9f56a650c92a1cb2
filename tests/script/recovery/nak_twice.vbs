# A second NAK for the same PSN says nothing new while the repeat is under way.
qp rc
 +0us post send len=8 wr=1
 +0us > rc.send_only psn=100 len=8 ackreq
 +0us post send len=8 wr=2
 +0us > rc.send_only psn=101 len=8 ackreq
+10us < rc.ack psn=100 nak=psn_sequence
 +0us > rc.send_only psn=100 len=8 ackreq
 +0us > rc.send_only psn=101 len=8 ackreq
 +1us < rc.ack psn=100 nak=psn_sequence
+10us < rc.ack psn=101
 +0us complete wr=1 success
 +0us complete wr=2 success
