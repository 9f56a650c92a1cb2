# A message that lost a packet is dropped to its end; the next one, whatever its PSN, takes the same receive from its start.
qp uc
 +0us recv len=4096 wr=1
 +0us < uc.send_first  psn=200 len=1024
 +0us < uc.send_last   psn=202 len=8 dropped
 +0us < uc.send_only   psn=300 len=64
 +0us complete recv wr=1 success len=64
 +0us idle
