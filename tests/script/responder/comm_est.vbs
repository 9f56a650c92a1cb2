# The first packet in RTR raises COMM_EST, once; requests are executed and answered there.
qp rc state=rtr
 +0us recv len=8 wr=1
 +0us < rc.send_only psn=200 len=8 ackreq
 +0us event comm_est
 +0us > rc.ack psn=200
 +0us complete recv wr=1 success
 +0us < rc.write_only psn=201 len=8 ackreq
 +0us > rc.ack psn=201
 +0us modify state=rts
 +0us post write len=8 wr=2
 +0us > rc.write_only psn=100 len=8 ackreq
