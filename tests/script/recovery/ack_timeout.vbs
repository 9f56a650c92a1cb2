# Local ack timeout: everything from the oldest unacknowledged PSN goes again.
qp rc timeout=5
 +0us post write len=2500 wr=1
 +0us > rc.write_first  psn=100 len=1024
 +0us > rc.write_middle psn=101 len=1024
 +0us > rc.write_last   psn=102 len=452 ackreq
+131.072us > rc.write_first  psn=100 len=1024
 +0us > rc.write_middle psn=101 len=1024
 +0us > rc.write_last   psn=102 len=452 ackreq
+10us < rc.ack psn=100
+131.072us > rc.write_middle psn=101 len=1024
 +0us > rc.write_last   psn=102 len=452 ackreq
 +5us < rc.ack psn=102
 +0us complete wr=1 success
 +0us idle
 +0us counter timeouts=2
