# A message sent again from its start while it is half received: old packets are acknowledged with the newest PSN.
qp rc
 +0us < rc.write_first  psn=200 len=1024 dma=3000
 +0us < rc.write_middle psn=201 len=1024
 +5us < rc.write_first  psn=200 len=1024 dma=3000 fill=1 dropped
 +0us > rc.ack psn=201 msn=0
 +0us < rc.write_middle psn=201 len=1024 fill=1 dropped
 +0us > rc.ack psn=201 msn=0
 +0us < rc.write_last   psn=202 len=952 ackreq
 +0us > rc.ack psn=202 msn=1
