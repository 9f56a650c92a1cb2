# A bind beyond its region is refused, and the QP goes to ERR.
mw w type=2
qp rc
 +0us post bind mw=w at=remote+65000 len=1000 wr=1
 +0us complete wr=1 mw_bind_err
 +0us state err cause=mw_bind
