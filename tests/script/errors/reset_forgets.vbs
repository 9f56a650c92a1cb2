# RESET forgets everything without completions; the QP starts anew.
qp rc
 +0us post write len=8 wr=1
 +0us > rc.write_only psn=100 len=8 ackreq
 +0us recv len=8 wr=2
 +0us modify state=reset
 +0us idle
 +0us modify state=init
 +0us modify state=rtr rq_psn=700
 +0us modify state=rts sq_psn=500
 +0us < rc.send_only psn=700 len=8 ackreq dropped
 +0us > rc.ack psn=700 rnr=12 msn=0
 +0us post write len=8 wr=3
 +0us > rc.write_only psn=500 len=8 ackreq
 +5us < rc.ack psn=500 msn=1
 +0us complete wr=3 success
