# Unsignalled work completes in silence; a signalled one after it speaks for itself alone.
qp rc
 +0us post write len=8 unsignalled wr=1
 +0us > rc.write_only psn=100 len=8 ackreq?
 +0us post write len=8 unsignalled wr=2
 +0us > rc.write_only psn=101 len=8 ackreq?
 +0us post write len=8 wr=3
 +0us > rc.write_only psn=102 len=8 ackreq
 +5us < rc.ack psn=102
 +0us complete wr=3 success
 +0us idle
