# The region must allow binding.
mw w type=2
qp rc
 +0us post bind mw=w mr=local len=64 access=rr wr=1
 +0us complete wr=1 mw_bind_err
 +0us state err cause=mw_bind
