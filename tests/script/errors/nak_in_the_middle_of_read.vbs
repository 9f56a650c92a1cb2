# A READ refused half way: what had arrived stays, the request fails.
qp rc
 +0us post read len=3000 wr=1
 +0us > rc.read_request psn=100 ackreq
 +5us < rc.read_response_first psn=100 len=1024
 +5us < rc.ack psn=101 nak=remote_access
 +0us complete wr=1 rem_access_err
 +0us state err cause=nak_remote_access
