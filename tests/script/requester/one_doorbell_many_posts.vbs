# Requests put together are published together.
qp rc
 +0us post write len=8 wr=1 more
 +0us post write len=8 wr=2 more
 +0us post write len=8 wr=3
 +0us > rc.write_only psn=100 len=8 ackreq
 +0us > rc.write_only psn=101 len=8 ackreq
 +0us > rc.write_only psn=102 len=8 ackreq
 +5us < rc.ack psn=102
 +0us complete wr=1 success
 +0us complete wr=2 success
 +0us complete wr=3 success
