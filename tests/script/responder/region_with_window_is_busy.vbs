# A region cannot be invalidated while a window is bound to it.
mw w type=2
qp rc
 +0us post bind mw=w at=remote len=256 wr=1
 +0us complete wr=1 success
 +0us invalidate mr=remote fails=EBUSY
 +0us post local_inv inv=w wr=2
 +0us complete wr=2 success
 +0us invalidate mr=remote
