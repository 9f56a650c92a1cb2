/* The counters of a lane. One list makes the enumeration, the array and the names: X(NAME, "name", "what it means").
 * Drop reasons are first; a dropped packet counts under exactly one of them. */
#ifndef VB_CORE_COUNTERS_H
#define VB_CORE_COUNTERS_H

#define VB_COUNTERS(X)                                                                                                 \
	X(DROP_BAD_QPN, "drop_bad_qpn", "destination QP does not exist")                                               \
	X(DROP_QP_STATE, "drop_qp_state", "destination QP is not in a state to receive this")                          \
	X(DROP_TRANSPORT, "drop_transport", "opcode does not belong to the QP's transport")                            \
	X(DROP_PKEY, "drop_pkey", "partition key does not match")                                                      \
	X(DROP_QKEY, "drop_qkey", "queue key does not match")                                                          \
	X(DROP_ADDRESS, "drop_address", "source or destination address is not the connection's")                       \
	X(DROP_DUPLICATE, "drop_duplicate", "duplicate request that is no longer remembered")                          \
	X(DROP_OUT_OF_ORDER, "drop_out_of_order", "request beyond the expected PSN, already answered by a NAK")        \
	X(DROP_STALE_ACK, "drop_stale_ack", "acknowledgement of nothing outstanding")                                  \
	X(DROP_SYNDROME, "drop_syndrome", "acknowledgement or response with a reserved syndrome")                      \
	X(DROP_NO_RECV, "drop_no_recv", "UC or UD message, or frame, without a posted receive")                        \
	X(DROP_UC_SEQUENCE, "drop_uc_sequence", "UC packet of a message that lost a packet")                           \
	X(DROP_UC_ACCESS, "drop_uc_access", "UC message refused by key, bounds or permission")                         \
	X(DROP_LENGTH, "drop_length", "payload length is not what the opcode or path MTU allows")                      \
	X(DROP_PROBE, "drop_probe",                                                                                    \
		"question about a path, or its answer, without the connection's secret or address")                    \
	X(DROP_LOCAL_PEER, "drop_local_peer",                                                                          \
		"datagram for a process of this host that took none for a while, or died")                             \
	X(RX_PACKETS, "rx_packets", "packets received by the engine")                                                  \
	X(RX_BYTES, "rx_bytes", "payload bytes received")                                                              \
	X(TX_PACKETS, "tx_packets", "packets handed out to be sent")                                                   \
	X(TX_BYTES, "tx_bytes", "payload bytes handed out to be sent")                                                 \
	X(TX_ERRORS, "tx_errors", "packets whose sending failed")                                                      \
	X(RETRANSMITTED, "retransmitted", "request packets sent again, probes excluded")                               \
	X(DUPLICATES, "duplicates", "duplicate requests received")                                                     \
	X(OUT_OF_ORDER, "out_of_order", "gaps seen by a responder")                                                    \
	X(HELD, "held", "packets kept that came before their turn, for selective repeat")                              \
	X(LOST, "lost", "packets found missing singly, by selective repeat")                                           \
	X(SENT_IN_VAIN, "sent_in_vain", "packets sent again that had only been late, by selective repeat")             \
	X(BITMAP_SENT, "bitmap_sent", "bitmaps sent of what came before its turn")                                     \
	X(BITMAP_RECEIVED, "bitmap_received", "bitmaps received")                                                      \
	X(PROBES, "probes", "packets repeated after silence, to hear what was lost")                                   \
	X(PATH_PROBES, "path_probes", "questions sent whether a pair of addresses carries packets")                    \
	X(PATH_MOVES, "path_moves", "QPs that went over to another pair, because nothing was acknowledged")            \
	X(PATH_FOLLOWS, "path_follows", "QPs that went where their peer had gone")                                     \
	X(PATH_RETURNS, "path_returns", "QPs whose own pair answered again, and that went back to it")                 \
	X(TIMEOUTS, "timeouts", "local ack timeouts")                                                                  \
	X(NAK_SENT, "nak_sent", "NAKs sent, RNR excluded")                                                             \
	X(NAK_RECEIVED, "nak_received", "NAKs received, RNR excluded")                                                 \
	X(RNR_SENT, "rnr_sent", "RNR NAKs sent")                                                                       \
	X(RNR_RECEIVED, "rnr_received", "RNR NAKs received")                                                           \
	X(IMPLIED_NAK, "implied_nak", "gaps seen in READ responses or acknowledgements")                               \
	X(ACK_SENT, "ack_sent", "acknowledgements sent")                                                               \
	X(CE_RECEIVED, "ce_received", "packets that arrived with Congestion Experienced")                              \
	X(CNP_SENT, "cnp_sent", "congestion notifications sent")                                                       \
	X(CNP_RECEIVED, "cnp_received", "congestion notifications received")                                           \
	X(QP_ERRORS, "qp_errors", "QPs that went to the error state by themselves")                                    \
	X(CQ_OVERRUNS, "cq_overruns", "completions lost to a full completion queue")

enum vb_counter {
#define X(name, text, meaning) VB_##name,
	VB_COUNTERS(X)
#undef X
		VB_COUNTER_COUNT,
};

extern const char *const vb_counter_name[VB_COUNTER_COUNT];

#endif
