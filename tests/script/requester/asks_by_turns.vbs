# A holder that asks for one packet at a time gives a turn to each, and a turn's last packet asks for an ack.
lane no_cc no_window budget=1
qp rc
 +0us post write len=2500 wr=1
 +0us > rc.write_first  psn=100 len=1024 ackreq
 +0us > rc.write_middle psn=101 len=1024 ackreq
 +0us > rc.write_last   psn=102 len=452 ackreq
+10us < rc.ack psn=102
 +0us complete wr=1 success
