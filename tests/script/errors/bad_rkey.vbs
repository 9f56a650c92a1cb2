# An unknown key: 0x62, an access event, and the QP is dead; later packets are dropped.
qp rc
 +0us < rc.write_only psn=200 len=8 rkey=bad ackreq dropped
 +0us > rc.ack psn=200 nak=remote_access
 +0us event qp_access_err
 +0us state err cause=remote_bad_rkey psn=200 access=write len=8
 +0us < rc.write_only psn=201 len=8 ackreq dropped
 +0us counter drop_qp_state=1
