# A CNP halves the window: of 60 KiB posted, 32 KiB may be under way afterwards.
qp rc mtu=4096
 +0us < cnp
 +0us post write len=61440 wr=1
 +0us > rc.write_first  psn=100 len=4096
 +0us > rc.write_middle psn=101 len=4096
 +0us > rc.write_middle psn=102 len=4096
 +0us > rc.write_middle psn=103 len=4096
 +0us > rc.write_middle psn=104 len=4096
 +0us > rc.write_middle psn=105 len=4096
 +0us > rc.write_middle psn=106 len=4096 ackreq
 +0us quiet
 +0us counter cnp_received=1
