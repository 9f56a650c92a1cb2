# A datagram longer than the MTU is not sent.
nic mtu=1024
qp ud
 +0us post send len=1024 wr=1
 +0us > ud.send_only psn=100 len=1024 ackreq?
 +0us complete wr=1 success
 +0us post send len=1025 wr=2
 +0us complete wr=2 loc_len_err
 +0us state sqe cause=local_length
