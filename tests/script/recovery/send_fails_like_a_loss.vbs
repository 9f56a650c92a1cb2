# A packet that the network interface refuses counts as lost, and is made good.
qp rc
 +0us send_error errno=105
 +0us post write len=8 wr=1
 +0us > rc.write_only psn=100 len=8 ackreq
+1ms > rc.write_only psn=100 len=8 ackreq
 +5us < rc.ack psn=100
 +0us complete wr=1 success
 +0us counter tx_errors=1
