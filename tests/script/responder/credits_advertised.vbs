# A device that advertises credits says how many receives wait; with an SRQ it says nothing.
nic credits
qp rc
 +0us recv len=8 wr=1
 +0us recv len=8 at=local+64 wr=2
 +0us recv len=8 at=local+128 wr=3
 +0us < rc.send_only psn=200 len=8 ackreq
 +0us > rc.ack psn=200 credits=2
 +0us complete recv wr=1 success
 +0us < rc.write_only psn=201 len=8 ackreq
 +0us > rc.ack psn=201 credits=2
