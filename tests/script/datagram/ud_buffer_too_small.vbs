# A receive without room for forty bytes and the payload completes with LOC_LEN_ERR; the QP lives on.
qp ud
 +0us recv len=139 wr=1
 +0us recv len=140 at=local+512 wr=2
 +0us < ud.send_only psn=5 len=100 dropped takes_recv
 +0us complete recv wr=1 loc_len_err
 +0us < ud.send_only psn=6 len=100
 +0us complete recv wr=2 success len=140
