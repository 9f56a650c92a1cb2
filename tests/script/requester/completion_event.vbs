# An armed CQ raises one event for the next completion, and then none until it is armed again.
qp rc
 +0us arm
 +0us post write len=8 wr=1
 +0us > rc.write_only psn=100 len=8 ackreq
 +0us post write len=8 wr=2
 +0us > rc.write_only psn=101 len=8 ackreq
 +5us < rc.ack psn=101
 +0us event completion
 +0us complete wr=1 success
 +0us complete wr=2 success
 +0us post write len=8 wr=3
 +0us > rc.write_only psn=102 len=8 ackreq
 +5us < rc.ack psn=102
 +0us complete wr=3 success
