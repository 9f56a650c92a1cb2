# What was before the bad work request finishes first; what is after it is flushed.
qp rc
 +0us post write len=8 wr=1
 +0us > rc.write_only psn=100 len=8 ackreq
 +0us post send len=8 lkey=bad wr=2
 +0us post write len=8 wr=3
+10us < rc.ack psn=100
 +0us complete wr=1 success
 +0us complete wr=2 loc_prot_err
 +0us complete wr=3 wr_flush_err
 +0us state err cause=local_sge
