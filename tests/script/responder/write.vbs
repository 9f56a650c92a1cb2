# WRITEs of one and of several packets land where the RETH says and nowhere else; MSN counts messages.
qp rc
 +0us < rc.write_only psn=200 len=700 va=remote+64 ackreq
 +0us > rc.ack psn=200 msn=1
 +0us < rc.write_first  psn=201 len=1024 dma=2500 va=remote+8192
 +0us < rc.write_middle psn=202 len=1024
 +0us < rc.write_last   psn=203 len=452 ackreq
 +0us > rc.ack psn=203 msn=2
 +0us < rc.write_only psn=204 len=0 rkey=bad va=0 ackreq
 +0us > rc.ack psn=204 msn=3
 +0us idle
