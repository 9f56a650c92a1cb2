# A local error takes a UD QP to SQE: receiving goes on.
qp ud
 +0us recv len=200 wr=9
 +0us post send len=8 lkey=bad wr=1 unsent
 +0us complete wr=1 loc_prot_err
 +0us state sqe cause=local_sge
 +0us < ud.send_only psn=5 len=64
 +0us complete recv wr=9 success
 +0us modify state=rts
 +0us post send len=8 wr=2
 +0us > ud.send_only psn=100 len=8 ackreq? dest=0x222
 +0us complete wr=2 success
