# A First inside an open message abandons that; its receive is used from the start.
qp uc
 +0us recv len=4096 wr=1
 +0us < uc.send_first  psn=200 len=1024
 +0us < uc.send_first  psn=202 len=1024
 +0us < uc.send_last   psn=203 len=8
 +0us complete recv wr=1 success len=1032
