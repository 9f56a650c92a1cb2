# A second answer says that a probe was in vain only while it may be one to the probe: not when later packets have been
# answered meanwhile, for then the network has doubled it.
lane patience=16ms
qp rc timeout=18
  +0us post send len=8 wr=1
  +0us > rc.send_only psn=100 len=8 ackreq
 +16ms > rc.send_only psn=100 len=8 ackreq
 +10us < rc.ack psn=100
  +0us complete wr=1 success
  +0us post send len=8 wr=2
  +0us > rc.send_only psn=101 len=8 ackreq
 +10us < rc.ack psn=101
  +0us complete wr=2 success
 +50ms < rc.ack psn=101
  +0us post send len=8 wr=3
  +0us > rc.send_only psn=102 len=8 ackreq
 +1ms..4ms > rc.send_only psn=102 len=8 ackreq
 +10us < rc.ack psn=102
  +0us complete wr=3 success
