# A peer that has lost nothing may take its time: it waits for its core, and is not probed.
lane patience=32ms
qp rc timeout=18
  +0us post send len=8 wr=1
  +0us > rc.send_only psn=100 len=8 ackreq
 +31ms < rc.ack psn=100
  +0us complete wr=1 success
  +0us counter probes=0
  +0us idle
