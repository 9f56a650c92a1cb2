# Two messages, the first lost: the NAK brings both back in order, and each completes once.
qp rc
 +0us post send len=1500 wr=1
 +0us > rc.send_first psn=100 len=1024
 +0us > rc.send_last  psn=101 len=476 ackreq
 +0us post write len=8 wr=2
 +0us > rc.write_only psn=102 len=8 ackreq
+10us < rc.ack psn=100 nak=psn_sequence
 +0us > rc.send_first psn=100 len=1024
 +0us > rc.send_last  psn=101 len=476 ackreq
 +0us > rc.write_only psn=102 len=8 ackreq
 +1us < rc.ack psn=101
 +0us complete wr=1 success
 +1us < rc.ack psn=102
 +0us complete wr=2 success
