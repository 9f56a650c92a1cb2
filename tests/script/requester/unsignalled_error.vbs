# An unsignalled work request that fails completes all the same.
qp rc
 +0us post write len=8 unsignalled wr=1
 +0us > rc.write_only psn=100 len=8 ackreq?
 +5us < rc.ack psn=100 nak=remote_access msn=0
 +0us complete wr=1 rem_access_err
 +0us state err cause=nak_remote_access
