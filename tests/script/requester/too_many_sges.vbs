# More scatter entries than the QP was made for are refused when posting.
qp rc max_sge=2
 +0us post send len=90 sges=9 wr=1 fails=EINVAL
 +0us recv len=90 sges=9 wr=2 fails=EINVAL
 +0us idle
