# UD has SEND alone.
qp ud
 +0us post write len=8 wr=1 fails=EINVAL
 +0us post read len=8 wr=2 fails=EINVAL
 +0us post send_inv len=8 wr=3 fails=EINVAL
