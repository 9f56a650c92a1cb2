# Sends are refused before RTS; receives before INIT.
qp rc name=r state=reset
qp rc name=i state=init
qp rc name=t state=rtr
 +0us post write len=8 wr=1 qp=r fails=EINVAL
 +0us recv len=8 wr=1 qp=r fails=EINVAL
 +0us post write len=8 wr=1 qp=i fails=EINVAL
 +0us recv len=8 wr=1 qp=i
 +0us post write len=8 wr=1 qp=t fails=EINVAL
 +0us recv len=8 wr=1 qp=t
 +0us idle
