# A Q_Key with its top bit set means the QP's own.
qp ud qkey=0x12345678
 +0us post send len=8 qkey=0x80000000 wr=1
 +0us > ud.send_only psn=100 len=8 ackreq? qkey=0x12345678
 +0us complete wr=1 success
