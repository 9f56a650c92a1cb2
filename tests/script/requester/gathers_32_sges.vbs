# A message gathered from 32 pieces, over several packets; 33 are refused.
qp rc mtu=256 max_sge=32
 +0us post send len=999 sges=32 wr=1
 +0us > rc.send_first  psn=100 len=256
 +0us > rc.send_middle psn=101 len=256
 +0us > rc.send_middle psn=102 len=256
 +0us > rc.send_last   psn=103 len=231 ackreq
 +5us < rc.ack psn=103
 +0us complete wr=1 success
