# A length that is a multiple of the path MTU ends with a full Last, not an empty one.
qp rc mtu=256
 +0us post write len=512 wr=1
 +0us > rc.write_first psn=100 len=256
 +0us > rc.write_last  psn=101 len=256 ackreq
 +5us < rc.ack psn=101
 +0us complete wr=1 success
