/* What the broker's tests share: client processes and their traffic, and a look at the broker's processes and sockets
 * from outside. */
#ifndef TESTS_BROKER_HARNESS_H
#define TESTS_BROKER_HARNESS_H

#include "client.h"
#include "leftovers.h"

/* The broker is slow then, and has no filter of system calls. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

#define NOBODY      65534
#define MAX_CLIENTS 64
#define PORT        4791
#define ROUNDS      3 /* of which each has an IPv4 and an IPv6 datagram to each client, from fresh source ports */

extern struct client_process clients[MAX_CLIENTS];
extern unsigned client_count;

double seconds(void);

/* The broker's processes in this namespace; their number. 0 for one that cannot be told. */
unsigned find_brokers(pid_t *parent, pid_t *worker);
bool wait_for_brokers(unsigned wanted, double limit);
void find_both(pid_t *parent, pid_t *worker);
/* Both are there, and neither is the one that was killed. */
void find_both_without(pid_t killed, pid_t *parent, pid_t *worker);
/* None of the two may see the other die. */
void kill_both(void);
void await_sockets(unsigned count); /* a killed process's are closed, or change hands, a little later than it is gone */
unsigned count_descriptors(pid_t pid);
void await_descriptors(pid_t pid, unsigned count);

/* To loopback, or to4 (four bytes). */
void send_bytes(int family, const char *to4, const uint8_t *bytes, size_t length);
void send_to_qpn(int family, uint32_t qpn);
void send_to_all(void);
/* The client reads until it has so many datagrams, which may take a moment; strays and more than those are an error. */
void collect(struct client_process *client, unsigned wanted);
/* Each client reads what came; with is_right, exactly what send_to_all sent. */
void collect_all(bool is_right);
void check_steering(void);

/* A connection that says nothing yet. */
int connect_raw(void);
/* The answer's error, 0 for anything else that was said, -1 when the connection was ended. */
int answer_of(int fd);

/* Each has a slot, and no two the same. */
void start_clients(unsigned count);
/* The same, one after the other: the last is behind all others in the kernel's group. */
void start_clients_in_order(unsigned count);
void wait_for_recoveries(unsigned wanted);
/* Ends clients and broker; not 0 when anything of the broker stays. */
int tear_down(void **state);

/* One line a test: X(name) */
#define BROKER_TESTS(X)                                                                                                \
	X(slots__each_process_gets_its_own_datagrams)                                                                  \
	X(slots__sixty_four_processes_at_once)                                                                         \
	X(slots__local_peers_that_leave_cost_nobody_a_datagram)                                                        \
	X(slots__strays_reach_nobody)                                                                                  \
	X(slots__multicast_reaches_only_those_who_joined)                                                              \
	X(slots__the_last_one_taken_is_an_error_that_says_so)                                                          \
	X(client__its_death_frees_the_slot_and_disturbs_nobody)                                                        \
	X(slots__local_peers_come_and_go_without_counting_as_overflow)                                                 \
	X(client__release_frees_the_slot)                                                                              \
	X(worker__killed_is_replaced_and_clients_go_on)                                                                \
	X(worker__killed_together_with_clients)                                                                        \
	X(parent__killed_is_replaced_and_clients_go_on)                                                                \
	X(both__killed_at_once_leave_the_slots_right)                                                                  \
	X(both__killed_with_a_place_kept)                                                                              \
	X(worker__killed_with_a_place_kept)                                                                            \
	X(both__killed_with_a_client)                                                                                  \
	X(both__killed_while_a_client_is_stopped)                                                                      \
	X(both__killed_while_a_client_is_stopped_keep_its_slot)                                                        \
	X(chaos__whoever_dies_the_rest_is_put_right)                                                                   \
	X(sockets_given__clients_wait_for_the_next_broker)                                                             \
	X(sockets_given__of_other_names_are_refused)                                                                   \
	X(broker__leaves_when_nobody_needs_it)                                                                         \
	X(broker__twenty_that_start_at_once_share_one)                                                                 \
	X(broker__of_another_user_is_refused)                                                                          \
	X(start__port_taken_says_by_whom)                                                                              \
	X(start__is_not_seen_by_the_program)                                                                           \
	X(start__missing_program_is_named)                                                                             \
	X(start__program_that_cannot_run_is_named)                                                                     \
	X(bad_client__is_refused_and_leaks_nothing)                                                                    \
	X(bad_client__that_never_reads_is_dropped)                                                                     \
	X(mad__of_anothers_connection_is_not_sent)                                                                     \
	X(mad__in_anothers_stead_is_not_sent)                                                                          \
	X(request__refused_is_refused_again_though_somebody_listens_now)                                               \
	X(request__answered_is_for_who_answered_it_though_another_listens_now)                                         \
	X(request__of_a_process_that_died_is_refused_again)                                                            \
	X(broker__of_a_user_serves_that_user_and_root)                                                                 \
	X(broker__that_is_shared_serves_everybody)                                                                     \
	X(silent__connections_make_room_for_a_newcomer)                                                                \
	X(connections__of_one_user_leave_room_for_others)                                                              \
	X(slots__of_one_user_leave_room_for_others)                                                                    \
	X(slots__further_ones_leave_half_to_others)                                                                    \
	X(slot__given_back_twice_is_no_breach)                                                                         \
	X(forwarders__of_one_user_leave_room_for_others)                                                               \
	X(processes__that_cannot_be_told_apart_have_a_forwarder_each)                                                  \
	X(newcomers__in_a_storm_do_not_hold_up_others)                                                                 \
	X(descriptor__that_lingers_holds_up_nobody)                                                                    \
	X(ports__below_1024_are_not_for_who_runs_a_program_of_root)                                                    \
	X(ports__below_1024_take_a_privilege)                                                                          \
	X(ports__below_1024_are_not_for_root_of_another_namespace)                                                     \
	X(ports__below_1024_are_for_who_has_the_capability)                                                            \
	X(broker__has_no_privileges_and_few_system_calls)                                                              \
	X(flood__leaves_a_listener_that_does_not_read_its_connection)                                                  \
	X(flood__of_requests_does_not_hinder_an_honest_peer)                                                           \
	X(flood__of_questions_does_not_hinder_an_honest_peer)                                                          \
	X(discovery__own_host_is_known_and_nobody_is_nobody)                                                           \
	X(mad__is_answered_at_its_own_length)                                                                          \
	X(mad__posted_before_its_process_died_is_sent)                                                                 \
	X(discovery__finds_verbena_over_the_wire)                                                                      \
	X(steering__stays_right_when_the_kernel_merges)                                                                \
	X(steering__places_that_are_kept_do_not_stop_merging)                                                          \
	X(forwarder__brings_another_user_what_is_his)                                                                  \
	X(forwarder__joins_multicast_groups_for_another)                                                               \
	X(forwarder__outlives_both_brokers)                                                                            \
	X(forwarder__outlives_worker_and_parent)                                                                       \
	X(forwarder__killed_is_replaced)                                                                               \
	X(introduction__lets_two_clients_talk)                                                                         \
	X(introduction__of_all_with_all_at_once_comes_once_to_each)                                                    \
	X(introduction__asked_for_again_is_not_repeated)                                                               \
	X(introduction__of_two_slots_of_one_process_tells_it_of_both)                                                  \
	X(introduction__with_nobody_is_answered)                                                                       \
	X(introduction__of_a_slot_with_another_process_in_it_is_a_new_one)                                             \
	X(introduction__of_other_users_is_with_them_and_not_with_forwarders)                                           \
	X(introduction__of_a_slot_that_comes_by_another_connection_is_a_new_one)                                       \
	X(introduction__with_a_limit_of_file_sizes_kills_no_worker)                                                    \
	X(introduction__survives_workers_that_die)                                                                     \
	X(introduction__survives_both_that_die)                                                                        \
	X(introduction__is_asked_for_by_a_slots_own_process_alone)                                                     \
	X(introduction__flood_of_questions_holds_up_nobody)                                                            \
	X(introduction__flood_that_is_not_read_ends_who_asks)                                                          \
	X(introduction__who_does_not_read_is_introduced_to_a_few)                                                      \
	X(socket__lets_nothing_in_but_its_own)                                                                         \
	X(namespace__of_nobody_has_a_broker_that_knows_strangers)                                                      \
	X(namespace__of_nobody_that_is_shared_gives_strangers_no_socket)                                               \
	X(namespace__of_nobody_outlives_its_brokers)                                                                   \
	X(introduction__of_equal_numbers_of_two_namespaces_is_of_two_users)                                            \
	X(introduction__with_who_has_become_another_user_is_of_two_users)                                              \
	X(socket__is_not_given_to_who_has_become_another_user)                                                         \
	X(socket__is_given_to_a_program_that_is_its_owners)                                                            \
	X(map__that_one_of_several_users_has_detached_is_put_back)                                                     \
	X(socket__of_the_group_is_not_given_to_another_user)

#define DECLARE(name) void name(void **state);
BROKER_TESTS(DECLARE)

#endif
