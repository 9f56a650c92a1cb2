# Where messages begin again, what was acknowledged of one counts no more when a packet is missing.
lane go_back_0
qp rc mtu=1024
 +0us post write len=3500 wr=7
 +0us > rc.write_first  psn=100 len=1024
 +0us > rc.write_middle psn=101 len=1024
 +0us > rc.write_middle psn=102 len=1024
 +0us > rc.write_last   psn=103 len=428 ackreq
+10us < rc.ack psn=101
+10us < rc.ack psn=102 nak=psn_sequence
 +0us > rc.write_first  psn=100 len=1024
 +0us > rc.write_middle psn=101 len=1024
 +0us > rc.write_middle psn=102 len=1024
 +0us > rc.write_last   psn=103 len=428 ackreq
+10us < rc.ack psn=103
 +0us complete wr=7 success
 +0us idle
