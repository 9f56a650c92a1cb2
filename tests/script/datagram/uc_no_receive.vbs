# Without a receive the message is dropped to its end, silently.
qp uc
 +0us < uc.send_first psn=200 len=1024 dropped
 +0us recv len=4096 wr=1
 +0us < uc.send_last  psn=201 len=8 dropped
 +0us < uc.send_only  psn=202 len=8
 +0us complete recv wr=1 success len=8
