# A response shorter than what was asked for makes no sense.
qp rc
 +0us post read len=800 wr=1
 +0us > rc.read_request psn=100 ackreq
 +5us < rc.read_response_only psn=100 len=700 dropped
 +0us complete wr=1 bad_resp_err
 +0us state err cause=bad_response
