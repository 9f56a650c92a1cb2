# The first lost tail takes long to be found; as its probe alone is answered, the next does not.
lane patience=32ms
qp rc timeout=18
  +0us post send len=8 wr=1
  +0us > rc.send_only psn=100 len=8 ackreq
 +32ms > rc.send_only psn=100 len=8 ackreq
 +10us < rc.ack psn=100
  +0us complete wr=1 success
  +0us post send len=8 wr=2
  +0us > rc.send_only psn=101 len=8 ackreq
 +1ms..4ms > rc.send_only psn=101 len=8 ackreq
 +10us < rc.ack psn=101
  +0us complete wr=2 success
