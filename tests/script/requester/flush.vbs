# A FLUSH follows the WRITE that it is for, and is answered like a READ of nothing; when it was lost it comes again.
qp rc rd_atomic=1
 +0us post write len=8 wr=1 more
 +0us post flush range=4096 wr=2 more
 +0us post flush level=1 wr=3
 +0us > rc.write_only psn=100 len=8 ackreq?
 +0us > rc.flush psn=101 len=0 ackreq
 +5us < rc.read_response_only psn=101 len=0
 +0us complete wr=1 success
 +0us complete wr=2 success
 +0us > rc.flush psn=102 len=0 ackreq
 +5us < rc.ack psn=102 nak=psn_sequence
 +0us > rc.flush psn=102 len=0 ackreq
 +5us < rc.read_response_only psn=102 len=0
 +0us complete wr=3 success
 +0us idle
