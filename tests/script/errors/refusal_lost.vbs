# The fatal NAK is lost: whoever asks again is told again, though the QP is in ERR. What lies beyond is dropped.
qp rc
 +0us < rc.write_only psn=200 len=8 va=remote
 +0us < rc.write_only psn=201 len=8 rkey=bad ackreq dropped
 +0us > rc.ack psn=201 nak=remote_access
 +0us event qp_access_err
 +0us state err cause=remote_bad_rkey psn=201
 +1ms < rc.write_only psn=202 len=8 ackreq dropped
 +0us quiet
 +0us counter drop_qp_state=1
 +1ms < rc.write_only psn=201 len=8 rkey=bad ackreq dropped
 +0us > rc.ack psn=201 nak=remote_access
 +1ms < rc.write_only psn=200 len=8 va=remote ackreq dropped
 +0us > rc.ack psn=201 nak=remote_access
 +0us counter drop_qp_state=1
 +0us modify state=reset
 +0us < rc.write_only psn=201 len=8 rkey=bad ackreq dropped
 +0us counter drop_qp_state=2
