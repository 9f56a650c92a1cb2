# A message half sent when SQD comes is sent to its end, and lost packets are made good.
lane window=4096
qp rc
 +0us post write len=5000 wr=1
 +0us > rc.write_first  psn=100 len=1024
 +0us > rc.write_middle psn=101 len=1024
 +0us > rc.write_middle psn=102 len=1024 ackreq
 +0us modify state=sqd notify
 +5us < rc.ack psn=101 nak=psn_sequence
 +0us > rc.write_middle psn=101 len=1024 ackreq?
 +0us > rc.write_middle psn=102 len=1024 ackreq?
 +0us > rc.write_middle psn=103 len=1024 ackreq
 +5us < rc.ack psn=103
 +0us > rc.write_last   psn=104 len=904 ackreq
 +5us < rc.ack psn=104
 +0us complete wr=1 success
 +0us event sq_drained
