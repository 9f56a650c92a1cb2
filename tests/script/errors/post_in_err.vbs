# What is posted in ERR is flushed at once.
qp rc
 +0us modify state=err
 +0us post send len=8 wr=1
 +0us complete wr=1 wr_flush_err
 +0us recv len=8 wr=2
 +0us complete wr=2 wr_flush_err
