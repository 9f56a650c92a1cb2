# A CNP that was sent 110 days ago holds none back, though a difference of times can say 106 only.
qp rc
  +0us < rc.write_only psn=200 len=8 ackreq ce
  +0us > cnp
  +0us > rc.ack psn=200
 +55d  counter cnp_sent=1
 +55d  < rc.write_only psn=201 len=8 ackreq ce
  +0us > cnp
  +0us > rc.ack psn=201
 +10us < rc.write_only psn=202 len=8 ackreq ce
  +0us > rc.ack psn=202
