# LOCAL_INV of what is no bound window of this QP.
qp rc
 +0us post local_inv inv=remote wr=1
 +0us complete wr=1 loc_qp_op_err
 +0us state err cause=local_operation
