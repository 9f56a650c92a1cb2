# An acknowledgement whose syndrome is reserved says nothing: neither that what was refused is done, nor that it was refused.
qp rc
 +0us post write len=8 wr=1
 +0us > rc.write_only psn=100 len=8 ackreq
 +1us < rc.ack psn=100 nak=0xE0
 +0us < rc.ack psn=100 nak=0xE2
 +0us < rc.ack psn=100 nak=0x9F
 +0us < rc.ack psn=100 nak=0x5F
 +0us < rc.ack psn=100 nak=0x65
 +0us < rc.ack psn=100 nak=0x7F
 +0us counter drop_syndrome=6 nak_received=0
 +1us < rc.ack psn=100 nak=remote_access
 +0us complete wr=1 rem_access_err
 +0us state err cause=nak_remote_access
