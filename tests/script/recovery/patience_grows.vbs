# A probe that is answered late, or twice, was in vain: nothing was lost, the peer is slow, and is given twice the time.
lane patience=16ms
qp rc timeout=18
  +0us post send len=8 wr=1
  +0us > rc.send_only psn=100 len=8 ackreq
 +16ms > rc.send_only psn=100 len=8 ackreq
  +2ms < rc.ack psn=100
  +0us complete wr=1 success
  +0us post send len=8 wr=2
  +0us > rc.send_only psn=101 len=8 ackreq
 +32ms > rc.send_only psn=101 len=8 ackreq
 +10us < rc.ack psn=101
  +0us complete wr=2 success
 +10us < rc.ack psn=101
  +0us post send len=8 wr=3
  +0us > rc.send_only psn=102 len=8 ackreq
 +63ms < rc.ack psn=102
  +0us complete wr=3 success
  +0us counter probes=2
  +0us idle
