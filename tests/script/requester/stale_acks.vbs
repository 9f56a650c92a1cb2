# Acknowledgements outside of what is outstanding mean nothing: old ones, future ones, and any when nothing is.
qp rc
+10us < rc.ack psn=99
+10us < rc.ack psn=100
 +0us post write len=8 wr=1
 +0us > rc.write_only psn=100 len=8 ackreq
 +5us < rc.ack psn=99
 +0us < rc.ack psn=101
 +0us < rc.ack psn=99 nak=remote_access
 +0us < rc.ack psn=5000 nak=psn_sequence
 +5us < rc.ack psn=100
 +0us complete wr=1 success
 +5us < rc.ack psn=100
 +5us < rc.atomic_ack psn=100 dropped
 +5us < rc.read_response_only psn=100 len=8 dropped
 +0us counter drop_stale_ack=9
