# One byte beyond the region's end is too much.
qp rc
 +0us post write len=9 from=local+65528 lkey=local wr=1
 +0us complete wr=1 loc_prot_err
 +0us state err cause=local_sge
