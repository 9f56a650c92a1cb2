# What the peer missed shows that the way to it loses packets: from then on silence is answered soon.
lane patience=32ms
qp rc timeout=18
 +0us post send len=8 wr=1
 +0us > rc.send_only psn=100 len=8 ackreq
 +0us post send len=8 wr=2
 +0us > rc.send_only psn=101 len=8 ackreq
+10us < rc.ack psn=100 nak=psn_sequence
 +0us > rc.send_only psn=100 len=8 ackreq
 +0us > rc.send_only psn=101 len=8 ackreq
+10us < rc.ack psn=101
 +0us complete wr=1 success
 +0us complete wr=2 success
 +0us post send len=8 wr=3
 +0us > rc.send_only psn=102 len=8 ackreq
 +1ms > rc.send_only psn=102 len=8 ackreq
+10us < rc.ack psn=102
 +0us complete wr=3 success
