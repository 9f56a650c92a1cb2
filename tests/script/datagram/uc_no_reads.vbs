# UC has neither READ nor atomics.
qp uc
 +0us post read len=8 wr=1 fails=EINVAL
 +0us post fetch_add add=1 wr=2 fails=EINVAL
 +0us idle
