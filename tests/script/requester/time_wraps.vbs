# Time is a 64-bit circle: timers work across the place where it wraps.
lane time_wraps
qp rc timeout=2
 +0us post write len=8 wr=1
 +0us > rc.write_only psn=100 len=8 ackreq
 +16.384us > rc.write_only psn=100 len=8 ackreq
 +2us < rc.ack psn=100
 +0us complete wr=1 success
 +0us idle
