# A bad lkey behind good work: XRC is reliable, so the QP goes to ERR, not to SQE.
qp xrc_send
 +0us post send len=8 srqn=7 wr=1
 +0us > xrc.send_only psn=100 len=8 ackreq
 +0us post send len=8 srqn=7 lkey=bad wr=2
+10us < xrc.ack psn=100
 +0us complete wr=1 success
 +0us state err cause=local_sge
 +0us complete wr=2 loc_prot_err
