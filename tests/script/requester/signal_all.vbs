# A QP that signals all completes even what was posted unsignalled.
qp rc signal_all
 +0us post write len=8 unsignalled wr=1
 +0us > rc.write_only psn=100 len=8 ackreq
 +5us < rc.ack psn=100
 +0us complete wr=1 success
