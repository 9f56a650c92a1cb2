# A READ longer than the window is asked for in pieces that start at fixed places of the message: multiples of 64 KiB.
# The second goes when responses have made the window large enough for it.
mr big size=256K
qp rc mtu=4096
 +0us post read len=131072 from=big wr=1
 +0us > rc.read_request psn=100 dma=65536 ackreq
 +5us < rc.read_response_first psn=100 len=4096
 +0us < rc.read_response_middle psn=101 len=4096
 +0us < rc.read_response_middle psn=102 len=4096
 +0us < rc.read_response_middle psn=103 len=4096
 +0us < rc.read_response_middle psn=104 len=4096
 +0us < rc.read_response_middle psn=105 len=4096
 +0us < rc.read_response_middle psn=106 len=4096
 +0us < rc.read_response_middle psn=107 len=4096
 +0us < rc.read_response_middle psn=108 len=4096
 +0us < rc.read_response_middle psn=109 len=4096
 +0us < rc.read_response_middle psn=110 len=4096
 +0us < rc.read_response_middle psn=111 len=4096
 +0us > rc.read_request psn=116 dma=65536 ackreq
 +0us < rc.read_response_middle psn=112 len=4096
 +0us < rc.read_response_middle psn=113 len=4096
 +0us < rc.read_response_middle psn=114 len=4096
 +0us < rc.read_response_last   psn=115 len=4096
 +5us < rc.read_response_first psn=116 len=4096
 +0us < rc.read_response_middle psn=117 len=4096
 +0us < rc.read_response_middle psn=118 len=4096
 +0us < rc.read_response_middle psn=119 len=4096
 +0us < rc.read_response_middle psn=120 len=4096
 +0us < rc.read_response_middle psn=121 len=4096
 +0us < rc.read_response_middle psn=122 len=4096
 +0us < rc.read_response_middle psn=123 len=4096
 +0us < rc.read_response_middle psn=124 len=4096
 +0us < rc.read_response_middle psn=125 len=4096
 +0us < rc.read_response_middle psn=126 len=4096
 +0us < rc.read_response_middle psn=127 len=4096
 +0us < rc.read_response_middle psn=128 len=4096
 +0us < rc.read_response_middle psn=129 len=4096
 +0us < rc.read_response_middle psn=130 len=4096
 +0us < rc.read_response_last   psn=131 len=4096
 +0us complete wr=1 success
 +0us idle
