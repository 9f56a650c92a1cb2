# A message without bytes still takes one PSN, and needs no lkey.
qp rc
 +0us post write len=0 wr=1
 +0us > rc.write_only psn=100 len=0 ackreq
 +0us post write len=0 sges=1 lkey=bad wr=2
 +0us > rc.write_only psn=101 len=0 ackreq
 +5us < rc.ack psn=101
 +0us complete wr=1 success
 +0us complete wr=2 success
