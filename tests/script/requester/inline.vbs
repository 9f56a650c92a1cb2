# Inline bytes are copied by the post: what the program does to its memory afterwards changes nothing.
qp rc max_inline=300
 +0us post write len=256 inline wr=1
 +0us > rc.write_only psn=100 len=256 ackreq
 +0us post send len=300 sges=3 inline wr=2
 +0us > rc.send_only psn=101 len=300 ackreq
 +0us post send len=1025 inline wr=3 fails=EINVAL
 +5us < rc.ack psn=101
 +0us complete wr=1 success
 +0us complete wr=2 success
