# A WRITE that is not allowed is dropped silently, and the QP lives on.
qp uc
 +0us < uc.write_only psn=200 len=8 rkey=bad dropped
 +0us < uc.write_first psn=201 len=1024 dma=2000 va=remote+64000 dropped
 +0us < uc.write_last psn=202 len=976 dropped
 +0us < uc.write_only psn=203 len=8
 +0us state rts
