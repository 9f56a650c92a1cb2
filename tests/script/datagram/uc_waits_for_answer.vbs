# What the peer is has been asked: UC waits for the answer, for a stranger has no window to give.
peer asked
qp uc
 +0us post send len=100 wr=1
 +0us quiet
 +3ms peer verbena
 +0us > uc.send_only psn=100 len=100 ackreq?
 +0us complete wr=1 success
