# A local error takes a UC QP to SQE: sends are flushed, receiving goes on, and the program may bring it back to RTS.
qp uc
 +0us recv len=64 wr=9
 +0us post send len=8 lkey=bad wr=1
 +0us complete wr=1 loc_prot_err
 +0us state sqe cause=local_sge
 +0us post send len=8 wr=2
 +0us complete wr=2 wr_flush_err
 +0us < uc.send_only psn=200 len=8
 +0us complete recv wr=9 success len=8
