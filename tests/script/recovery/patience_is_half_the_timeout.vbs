# However patient, a probe comes before the specified timer, which would use up a retry; that one takes four times its
# least the first time, as 9.7.6.1.3 allows.
lane patience=32ms
qp rc timeout=10
  +0us post send len=8 wr=1
  +0us > rc.send_only psn=100 len=8 ackreq
 +8ms..9ms > rc.send_only psn=100 len=8 ackreq
 +10us < rc.ack psn=100
  +0us complete wr=1 success
  +0us counter timeouts=0
