# Four packets, or 4 KiB, are acknowledged at once; so are duplicates and gaps.
lane ack_delay=20us
qp rc
 +0us < rc.write_only psn=200 len=8 ackreq
 +0us < rc.write_only psn=201 len=8 ackreq
 +0us < rc.write_only psn=202 len=8 ackreq
 +0us < rc.write_only psn=203 len=8 ackreq
 +0us > rc.ack psn=203 msn=4
 +0us < rc.write_first  psn=204 len=1024 dma=4096 more
 +0us < rc.write_middle psn=205 len=1024 more
 +0us < rc.write_middle psn=206 len=1024 more
 +0us < rc.write_last   psn=207 len=1024 ackreq
 +0us > rc.ack psn=207 msn=5
 +0us < rc.write_only psn=207 len=8 ackreq dropped
 +0us > rc.ack psn=207 msn=5
 +0us < rc.write_only psn=209 len=8 ackreq dropped
 +0us > rc.ack psn=208 nak=psn_sequence
 +0us idle
