# Neither probes nor a timeout: silence is never broken.
lane never_probes ack_timeout=100us
qp rc timeout=0
  +0us post write len=2500 wr=1
  +0us > rc.write_first  psn=100 len=1024
  +0us > rc.write_middle psn=101 len=1024
  +0us > rc.write_last   psn=102 len=452 ackreq
  +0us deadline none
  +1s  < rc.ack psn=102
  +0us complete wr=1 success
