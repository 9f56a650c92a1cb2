/* NCCL's choice, beside values worked out by hand from the published formulas (src/graph/tuning.cc of 2.30.7). */
#include <math.h>
#include <string.h>
#include "net/nccl.h"
#include "net/nccl_graph.h"
#include "../unit.h"

static struct nccl_machine h100(uint32_t hosts, bool reduces)
{
	return (struct nccl_machine){ .ranks = 8 * hosts,
		.gpus = 8,
		.nics = 8,
		.scale_up_gb_s = 450,
		.nic_gb_s = 50,
		.capability = 90,
		.reduces = reduces };
}

static struct nccl_machine a100(uint32_t hosts)
{
	return (struct nccl_machine){
		.ranks = 8 * hosts, .gpus = 8, .nics = 8, .scale_up_gb_s = 300, .nic_gb_s = 25, .capability = 80
	};
}

static struct nccl_machine single(uint32_t hosts)
{
	return (struct nccl_machine){
		.ranks = hosts, .gpus = 1, .nics = 1, .scale_up_gb_s = 450, .nic_gb_s = 50, .capability = 90
	};
}

static void expect_graph(struct nccl_graph graph, uint32_t channels, double in_host, double between)
{
	assert_int_equal(graph.channels, channels);
	assert_true(graph.in_host == in_host && graph.between == between);
}

/* In one host of H100 6 rings of 60 GB/s fit into 18 links of 20.6, and are made 12 of 30; of A100 6 of 40 into 12
 * of 20. Between hosts a ring for each NIC has the largest speed below the NIC's. A host's NVLS has a channel for each
 * GPU: 8 of 40 fit, and 8 of 45 where that speed is tried. */
static void graphs__are_what_the_search_finds(void **state)
{
	const struct nccl_machine one = h100(1, true), four = h100(4, true), ampere = a100(1), more = a100(4);
	const struct nccl_machine alone = single(16);

	expect_graph(nccl_ring_graph(&one, 1), 12, 30, 30);
	expect_graph(nccl_ring_graph(&four, 4), 8, 48, 48);
	expect_graph(nccl_ring_graph(&ampere, 1), 12, 20, 20);
	expect_graph(nccl_ring_graph(&more, 4), 8, 24, 24);
	expect_graph(nccl_ring_graph(&alone, 16), 2, 24, 24);
	expect_graph(nccl_nvls_graph(&one, 1), 8, 40, 60);
	expect_graph(nccl_nvls_graph(&four, 4), 8, 45, 48);
}

static void expect(struct nccl_machine machine, const char *kind, uint64_t bytes, enum nccl_algorithm algorithm,
	enum nccl_protocol protocol, uint32_t channels, double us)
{
	const struct nccl_choice is = nccl_choose(&machine, kind, bytes);
	if (is.algorithm != algorithm || is.protocol != protocol || is.channels != channels ||
		fabs(is.us / us - 1) > 1e-6)
		fail_msg("%s of %llu: %s %s, %u channels, %.4f us; not %s %s, %u, %.4f", kind,
			(unsigned long long)bytes, nccl_algorithm_name(is.algorithm), nccl_protocol_name(is.protocol),
			is.channels, is.us, nccl_algorithm_name(algorithm), nccl_protocol_name(protocol), channels, us);
}

/* Latency, and beside it bytes over 1000 times the rate in GB/s. */
static void choices__are_those_of_the_formulas(void **state)
{
	const uint64_t kib = 1 << 10, mib = 1 << 20, gib = 1 << 30;

	/* Ring LL: 6.6 + 14 x 0.6; the least of 141 and half of 12 x 30, x 8 / 14. A tree has 6.8 + 14 x 0.6. */
	expect(h100(1, false), "allreduce", kib, NCCL_RING, NCCL_LL, 1, 15.0 + 1024 / (141e3 * 8 / 14));
	/* Ring Simple: 8.4 + 14 x 3.4; 360 x 8 / 14. */
	expect(h100(1, false), "allreduce", gib, NCCL_RING, NCCL_SIMPLE, 24, 56.0 + 1073741824 / (360e3 * 8 / 14));
	/* NVLS: 25; 8 x 40 x 0.85 x 7/8 x 2 x 8 / 14 = 272. */
	expect(h100(1, true), "allreduce", gib, NCCL_NVLS, NCCL_SIMPLE, 16, 25.0 + 1073741824 / 272e3);
	/* Tree LL of 4 hosts: 6.8 + 2 (7 x 0.6 + 2 x 5); 20.4 / 2 x 0.9. */
	expect(h100(4, false), "allreduce", kib, NCCL_TREE, NCCL_LL, 1, 35.2 + 1024 / 9180.0);
	/* Ring Simple of 4 hosts: 1.4 (8.4 + 56 x 3.4 + 6 x 14); 384 x 32 / 62. */
	expect(h100(4, false), "allreduce", gib, NCCL_RING, NCCL_SIMPLE, 16, 395.92 + 1073741824 / (384e3 * 32 / 62));
	/* NVLS tree of 4 hosts: 25 + 4 x 20.9; 8 channels of 45.5 at most, x 32 / 62. */
	expect(h100(4, true), "allreduce", 64 * mib, NCCL_NVLS_TREE, NCCL_SIMPLE, 16,
		108.6 + 67108864 / (364e3 * 32 / 62));
	/* Above a GiB NVLS tree's rate is the lesser one. */
	expect(h100(4, true), "allreduce", 2 * gib, NCCL_RING, NCCL_SIMPLE, 16,
		395.92 + 2147483648.0 / (384e3 * 32 / 62));
	/* PAT of 16 hosts of one GPU: 8 + 4 x 14 / 3.5 + 16 x 2.8; 48 x 0.75. */
	expect(single(16), "all-gather", mib, NCCL_PAT, NCCL_SIMPLE, 4, 68.8 + 1048576 / 36e3);
	/* Ring Simple of them: 8.4 + 15 x 14; 48 x 16 / 15. */
	expect(single(16), "all-gather", gib, NCCL_RING, NCCL_SIMPLE, 4, 218.4 + 1073741824 / 51.2e3);
	/* Ring LL of a reduce-scatter of 2 hosts: 6.6 + 14 x 1 + 2.7; 39 x 16 / 15. */
	expect(h100(2, true), "reduce-scatter", kib, NCCL_RING, NCCL_LL, 1, 23.3 + 1024 / (39e3 * 16 / 15));
	/* Broadcast in a host of A100, ring Simple: 8.4 + 3.4; 240. */
	expect(a100(1), "broadcast", gib, NCCL_RING, NCCL_SIMPLE, 24, 11.8 + 1073741824 / 240e3);
}

/* In between LL128: a ring in a host, and a tree over many. */
static void ll128__is_between(void **state)
{
	const uint64_t mib = 1 << 20;

	/* 14 + 14 x 1.9; 360 x 0.92 x 8 / 14. */
	expect(h100(1, false), "allreduce", 4 * mib, NCCL_RING, NCCL_LL128, 24, 40.6 + 4194304 / (331.2e3 * 8 / 14));
	/* 14 + 2 (7 x 1.25 + 7 x 8.5); 8 x 29 / 2 x 0.8. */
	expect(h100(128, false), "allreduce", 4 * mib, NCCL_TREE, NCCL_LL128, 16, 150.5 + 4194304 / 92.8e3);
}

static void what_is_not_there__has_no_time(void **state)
{
	const struct nccl_machine one = h100(1, true), four = h100(4, false);

	assert_true(nccl_time(&one, "allreduce", NCCL_NVLS, NCCL_LL, 1024) < 0);
	assert_true(nccl_time(&one, "allreduce", NCCL_NVLS_TREE, NCCL_SIMPLE, 1024) < 0);
	assert_true(nccl_time(&one, "all-gather", NCCL_TREE, NCCL_SIMPLE, 1024) < 0);
	assert_true(nccl_time(&four, "all-gather", NCCL_PAT, NCCL_SIMPLE, 1024) < 0);
	assert_true(nccl_time(&four, "allreduce", NCCL_NVLS_TREE, NCCL_SIMPLE, 1024) < 0);
	assert_false(nccl_has("alltoall"));
	assert_true(nccl_has("reduce"));
}

static void protocols__have_their_flags(void **state)
{
	assert_int_equal(nccl_wire_bytes(NCCL_LL, 1000), 2000);
	assert_int_equal(nccl_wire_bytes(NCCL_LL128, 1200), 1280);
	assert_int_equal(nccl_wire_bytes(NCCL_LL128, 1), 128);
	assert_int_equal(nccl_wire_bytes(NCCL_SIMPLE, 1000), 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(graphs__are_what_the_search_finds),
		cmocka_unit_test(choices__are_those_of_the_formulas),
		cmocka_unit_test(ll128__is_between),
		cmocka_unit_test(what_is_not_there__has_no_time),
		cmocka_unit_test(protocols__have_their_flags),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
