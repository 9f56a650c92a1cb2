# What a peer's ack carries says nothing of the way of its data.
lane tells_marks cnp=never
qp rc
 +0us post write len=8 wr=1
 +0us > rc.write_only psn=100 len=8 ackreq
 +1us < rc.ack psn=100 ce
 +0us complete wr=1 success
 +0us < rc.write_only psn=200 len=8 ackreq
 +0us > rc.ack psn=200
