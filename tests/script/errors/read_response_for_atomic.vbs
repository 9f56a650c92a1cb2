# A response of the wrong kind makes no sense.
qp rc
 +0us post fetch_add add=1 wr=1
 +0us > rc.fetch_add psn=100 ackreq
 +5us < rc.read_response_only psn=100 len=8 dropped
 +0us complete wr=1 bad_resp_err
 +0us state err cause=bad_response
