# A region of another protection domain opens nothing.
mr other other_pd access=lw
qp rc
 +0us post write len=8 from=other wr=1
 +0us complete wr=1 loc_prot_err
 +0us state err cause=local_sge
