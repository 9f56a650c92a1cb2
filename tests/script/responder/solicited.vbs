# A CQ armed for solicited completions stays quiet for others.
qp rc
 +0us recv len=8 wr=1
 +0us recv len=8 wr=2 at=local+64
 +0us arm solicited
 +0us < rc.send_only psn=200 len=8 ackreq
 +0us > rc.ack psn=200
 +0us complete recv wr=1 success
 +0us < rc.send_only psn=201 len=8 solicited ackreq
 +0us > rc.ack psn=201
 +0us event completion
 +0us complete recv wr=2 success
