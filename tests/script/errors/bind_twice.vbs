# A type-2 window is bound only while it is unbound.
mw w type=2
qp rc
 +0us post bind mw=w len=64 wr=1
 +0us complete wr=1 success
 +0us post bind mw=w len=64 wr=2
 +0us complete wr=2 mw_bind_err
 +0us state err cause=mw_bind
