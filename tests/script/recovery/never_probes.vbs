# Nothing is probed for: a lost tail is found by the ack timeout, which the lane says, and all is sent again.
lane never_probes ack_timeout=100us
qp rc
  +0us post write len=2500 wr=1
  +0us > rc.write_first  psn=100 len=1024
  +0us > rc.write_middle psn=101 len=1024
  +0us > rc.write_last   psn=102 len=452 ackreq
  +0us deadline at=100us
+100us > rc.write_first  psn=100 len=1024
  +0us > rc.write_middle psn=101 len=1024
  +0us > rc.write_last   psn=102 len=452 ackreq
  +5us < rc.ack psn=102
  +0us complete wr=1 success
  +0us counter probes=0 timeouts=1
