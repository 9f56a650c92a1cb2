# Before RTR nothing is taken; before RTS no acknowledgement is.
qp rc name=i state=init
qp rc name=t state=rtr
 +0us < rc.write_only psn=200 len=8 qp=i dropped
 +0us < rc.ack psn=100 qp=t
 +0us counter drop_qp_state=2
