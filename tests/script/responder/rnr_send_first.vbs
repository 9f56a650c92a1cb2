# RNR can only hit the first packet of a SEND.
qp rc min_rnr=1
 +0us < rc.send_first psn=200 len=1024 dropped
 +0us > rc.ack psn=200 rnr=1
 +0us < rc.send_last psn=201 len=8 ackreq dropped
 +0us recv len=2048 wr=1
 +9us < rc.send_first psn=200 len=1024
 +0us < rc.send_last psn=201 len=8 ackreq
 +0us > rc.ack psn=201
 +0us complete recv wr=1 success len=1032
