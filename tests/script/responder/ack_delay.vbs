# The ack of a small message waits for data to leave, and leaves just before it: a peer whose send is answered sees it
# completed before it sees the answer.
lane ack_delay=20us
qp rc
 +0us < rc.write_only psn=200 len=8 ackreq
 +0us deadline at=20us
 +5us post write len=8 wr=1
 +0us > rc.ack psn=200 msn=1
 +0us > rc.write_only psn=100 len=8 ackreq
 +5us < rc.ack psn=100
 +0us complete wr=1 success
 +0us idle
