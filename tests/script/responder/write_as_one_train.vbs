# Packets handed over as one train are answered once.
qp rc
 +0us < rc.write_first  psn=200 len=1024 dma=2500 va=remote+8192 more
 +0us < rc.write_middle psn=201 len=1024 more
 +0us < rc.write_last   psn=202 len=452 ackreq more
 +0us < rc.write_only   psn=203 len=8 ackreq
 +0us > rc.ack psn=203 msn=2
