# Middle and Last of a message whose First was lost.
qp uc
 +0us recv len=4096 wr=1
 +0us < uc.send_middle psn=201 len=1024 dropped
 +0us < uc.send_last   psn=202 len=8 dropped
 +0us < uc.send_only   psn=203 len=8
 +0us complete recv wr=1 success len=8
 +0us counter drop_uc_sequence=2
