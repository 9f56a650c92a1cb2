# Eight bytes out, a READ's empty answer back; it takes a READ's place in the depth, and comes again when it was lost.
qp rc rd_atomic=1
 +0us post atomic_write len=8 wr=1 more
 +0us post atomic_write len=8 wr=2
 +0us > rc.atomic_write psn=100 len=8 dma=8 ackreq
 +5us < rc.read_response_only psn=100 len=0
 +0us complete wr=1 success
 +0us > rc.atomic_write psn=101 len=8 dma=8 ackreq
 +5us < rc.ack psn=101 nak=psn_sequence
 +0us > rc.atomic_write psn=101 len=8 dma=8 ackreq
 +5us < rc.read_response_only psn=101 len=0
 +0us complete wr=2 success
 +0us idle
