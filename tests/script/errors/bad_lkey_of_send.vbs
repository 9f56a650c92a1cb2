# A send whose scatter entry has no right key fails locally and sends nothing.
qp rc
 +0us post send len=8 lkey=bad wr=1
 +0us complete wr=1 loc_prot_err
 +0us state err cause=local_sge
 +0us idle
