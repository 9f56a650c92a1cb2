# A full send queue refuses; an acknowledgement makes room.
qp rc max_send_wr=2
 +0us post write len=8 wr=1
 +0us > rc.write_only psn=100 len=8 ackreq
 +0us post write len=8 wr=2
 +0us > rc.write_only psn=101 len=8 ackreq
 +0us post write len=8 wr=3 fails=ENOMEM
 +5us < rc.ack psn=100
 +0us complete wr=1 success
 +0us post write len=8 wr=3
 +0us > rc.write_only psn=102 len=8 ackreq
 +5us < rc.ack psn=102
 +0us complete wr=2 success
 +0us complete wr=3 success
