#!/usr/bin/env python3
"""services_test BUILD ROOT: what `verbena sim` says of weights, checkpoints, input and inference."""

import pathlib
import sys
import unittest

from sim_case import SimCase

NETWORK = "network: {topology: switch, endpoints: 16, host-rate: 400G}\ntransport: {ack-every: 64}\n"


class Services(SimCase):
    def workload(self, *texts, network=NETWORK):
        return self.scenario(network + "workload:\n" + "".join(f"  - {{{text}}}\n" for text in texts))

    def refused(self, text, why):
        told = self.sim(self.workload(text), status=2)
        self.assertRegex(told.stderr, r"s\.yaml:4:\d+: workload\.0: " + why)

    def only(self, *arguments):
        return self.json(*arguments)["services"][0]


class Weights(Services):
    def test_weights__of_a_model_have_two_bytes_a_parameter(self):
        told = self.only("--set", "run.mode=flows", self.workload("kind: rl, model: llama3-8b, replicas: 2, piece: 64MB"))
        self.assertEqual((told["kind"], told["bytes"], told["replicas"], told["rollouts_ps"]), ("rl", 2 * 8030261248, 2, -1))
        self.assertAlmostEqual(told["weights_ps"] / 1e12, (2 * 8030261248 + 64e6) / 50e9 / 0.98, delta=0.01)

    def test_weights__are_told_as_text(self):
        told = self.sim(self.workload("kind: rl, bytes: 8MB, trainers: 2, tp: 2, replicas: 3, rollout: 1MB")).stdout
        self.assertRegex(told, r"rl 0: weights of 8 MB from 2 trainers to 3 replicas of 2 ranks, by a chain: all have them at [\d.]+ us "
                               r"\([\d.]+ GB/s a replica\), rollouts are back at [\d.]+ us")

    def test_weights__have_one_result_with_any_number_of_threads(self):
        scenario = self.workload("kind: rl, bytes: 8MB, trainers: 2, tp: 4, replicas: 3, rollout: 1MB, shape: tree")
        for mode in "packets", "flows":
            results = {self.json("--set", f"run.threads={threads}", "--set", f"run.mode={mode}", scenario)["result_hash"]
                       for threads in (1, 2, 4)}
            self.assertEqual(len(results), 1)

    def test_collective__beside_weights_has_its_time_alone(self):
        told = self.json(self.workload("kind: rl, bytes: 8MB, replicas: 15", "kind: allreduce, bytes: 4MB"))
        self.assertEqual([job["workload"] for job in told["jobs"]], [1])
        self.assertGreater(told["jobs"][0]["jct_ps"], told["jobs"][0]["alone_ps"])
        self.assertEqual([its["workload"] for its in told["services"]], [0])

    def test_weights__that_do_not_fit_are_refused_with_the_cure(self):
        self.refused("kind: rl, replicas: 16", "replicas: 17 ranks from rank 0 on, in a network of 16; write fewer")
        self.refused("kind: rl, replicas: 4, first: 12", "replicas: 5 ranks from rank 12 on")
        self.refused("kind: rl, trainers: 2, tp: 3", "trainers: 2 trainers and 3 ranks .*; write a multiple")
        self.refused("kind: rl, model: llama4", "model: there is no such model; write bytes, or one of these; there are llama3-8b")
        self.refused("kind: rl, bytes: 16TB, piece: 1", "piece: so small ones are more messages than a run takes")
        self.assertIn("'0': write one from 1 B to 4 GB", self.sim(self.workload("kind: rl, piece: 0"), status=2).stderr)

    def test_dry_run__counts_all_messages(self):
        told = self.sim("--dry-run", self.workload("kind: rl, bytes: 8MB, replicas: 3, piece: 1MB, rollout: 1MB")).stdout
        self.assertIn("27 messages, 27 MB", told)


class Storage(Services):
    def test_checkpoint__of_a_model_has_14_bytes_a_parameter(self):
        told = self.only("--set", "run.mode=flows", self.workload("kind: checkpoint, model: llama3-8b, storage: 12-15, message: 64MB"))
        self.assertEqual((told["bytes"], told["ranks"], told["storage_nodes"]), (14 * 8030261248, 12, 4))
        self.assertEqual((told["storage_gb_s"], told["restored_ps"]), (200, -1))
        self.assertAlmostEqual(told["stored_ps"] / 1e12, 14 * 8030261248 / 200e9 / 0.98, delta=0.006)

    def test_checkpoint__is_told_as_text(self):
        told = self.sim(self.workload("kind: checkpoint, bytes: 64MB, storage: 12-15, message: 1MB, restore: yes")).stdout
        rate = r"in [\d.]+ us \([\d.]+ GB/s of the storage nodes' 200.00\), read back by [\d.]+ us"
        self.assertRegex(told, f"checkpoint 0: 64 MB of 12 ranks to 4 storage nodes: stored {rate}\n")

    def test_input__slows_other_traffic_that_has_its_time_alone(self):
        scenario = self.workload("kind: input, tokens: 100000, token-bytes: 4, steps: 20, step-time: 100us, storage: 15",
                                 "kind: allreduce, bytes: 16MB, endpoints: 15")
        told = self.json(scenario)
        self.assertGreater(told["jobs"][0]["jct_ps"], told["jobs"][0]["alone_ps"])
        self.assertEqual((told["services"][0]["bytes"], told["services"][0]["ranks"]), (400000, 15))
        self.assertRegex(self.sim(scenario).stdout, r"input 0: 400 kB to each of 15 ranks in each of 20 steps; the slowest took [\d.]+ us\n")

    def test_storage__has_one_result_with_any_number_of_threads(self):
        scenario = self.workload("kind: checkpoint, bytes: 4MB, message: 100kB, storage: 13-15, restore: yes",
                                 "kind: input, tokens: 999, steps: 3, step-time: 10us, storage: 14-15")
        for mode in "packets", "flows":
            results = {self.json("--set", f"run.threads={threads}", "--set", f"run.mode={mode}", scenario)["result_hash"]
                       for threads in (1, 2, 4)}
            self.assertEqual(len(results), 1)

    def test_storage__that_cannot_be_is_refused_with_the_cure(self):
        self.refused("kind: checkpoint", "storage: '': write the endpoints of storage nodes as FIRST-LAST, such as 60-63")
        for text in "x", "3-", "-3", "1-2-3", "99999999999":
            self.refused(f"kind: input, storage: {text}", "storage: '.*': write the endpoints")
        self.refused("kind: checkpoint, storage: 12-16", "storage: endpoints 12-16 of a network that has 0-15")
        self.refused("kind: checkpoint, storage: 12-15, endpoints: 13", "endpoints: 13 ranks, and 12 are on no host with storage")
        self.refused("kind: checkpoint, storage: 12-15, bytes: 11", "bytes: fewer than one for each rank")
        self.refused("kind: checkpoint, storage: 12-15, bytes: 16TB, message: 1", "message: so small ones")
        self.refused("kind: checkpoint, storage: 12-15, model: x", "model: there is no such model")
        self.refused("kind: input, storage: 12-15, tokens: 1", "steps: none; write 1 or more")
        self.refused("kind: input, storage: 12-15, steps: 1", "tokens: none; write 1 or more")
        self.refused("kind: input, storage: 12-15, steps: 1000000000, tokens: 1", "steps: more messages than a run takes")
        self.refused("kind: input, storage: 12-15, steps: 9999, tokens: 1, step-time: 1000s", "step-time: all steps take longer")


ONE = "kind: inference, model: llama3-8b, gpu: H100, tp: 4, requests: 1, input-tokens: 8192, output-tokens: 101"


class Inference(Services):
    def test_one_request__takes_what_its_work_and_its_memory_take(self):
        """The prefill's work is 2 operations a parameter and token, and attention's scores; a step reads weights, keys and values."""
        fast = NETWORK.replace("400G", "90T").replace("}", ", host-delay: 1ps}", 1)
        told = self.only("--set", "run.mode=flows", self.workload(ONE, network=fast))
        weights = 8030261248 - 128256 * 4096  # the input's embedding is looked up
        work = 8192 * (2 * weights + 2 * 32 * 4096 * 8192)
        self.assertAlmostEqual(told["ttft_ps"]["p50"] / 1e12 / (work / (4 * 989e12 * 0.6)), 1, delta=0.01)
        step = (2 * 8030261248 + (8192 + 51) * 131072) / (4 * 3.35e12)
        self.assertAlmostEqual(told["tpot_ps"]["p50"] / 1e12 / step, 1, delta=0.002)
        self.assertEqual((told["requests"], told["done"], told["kv_bytes"], told["prefix_cache"]), (1, 1, 8192 * 131072, False))

    def test_slow_network__delays_the_first_token_by_kv_over_rate(self):
        def first(rate):
            network = NETWORK.replace("400G", rate).replace("}", ", host-delay: 1ps}", 1)
            return self.only("--set", "run.mode=flows", self.workload(ONE, network=network))["ttft_ps"]["p50"] / 1e12

        for rate, bits in ("10G", 10e9), ("25G", 25e9):
            grows = 8192 * 131072 / 4 * 8 / bits * 4174 / 4096  # a packet has 78 bytes beside its payload
            self.assertAlmostEqual((first(rate) - first("90T")) / grows, 1, delta=0.01)

    def test_requests_at_random__wait_as_for_a_server_with_fixed_times(self):
        """M/D/1, by the scenario's own keys."""
        fast = NETWORK.replace("400G", "90T").replace("}", ", host-delay: 1ps}", 1)
        one = self.only("--set", "run.mode=flows", self.workload(ONE.replace("101", "1"), network=fast))["ttft_ps"]["mean"] / 1e12
        load = 0.6
        many = ONE.replace("requests: 1,", f"requests: 40000, request-rate: {load / one:.6f},").replace("101", "1")
        told = self.only("--set", "run.mode=flows", self.workload(many, network=fast))
        self.assertAlmostEqual((told["ttft_ps"]["mean"] / 1e12 - one) / (one * load / 2 / (1 - load)), 1, delta=0.05)
        self.assertAlmostEqual(told["requests_per_s"] * one / load, 1, delta=0.02)

    def test_inference__is_told_as_text(self):
        told = self.sim(self.workload(ONE.replace("8192", "10"))).stdout
        self.assertRegex(told, r"inference 0: 1 prefill and 1 decode groups of 4 ranks; no prefix cache, memory is not bounded\n"
                               r"  1 of 1 requests are done, [\d.]+ a second; 1\.311 MB of keys and values\n"
                               r"  time to the first token: p50 [\d.]+ us, p99 [\d.]+ us\n  time per output token:   p50 [\d.]+ ms, p99 ")

    def test_traces__of_both_formats_have_one_result_with_any_number_of_threads(self):
        for name, count in ("azure.csv", 5), ("mooncake.jsonl", 3):
            trace = self.root / "tests/unit/net/traces" / name
            scenario = self.workload(f"kind: inference, model: llama3-8b, gpu: H100, prefill: 2, decode: 2, tp: 2, trace: {trace}")
            for mode in "packets", "flows":
                told = [self.json("--set", f"run.threads={threads}", "--set", f"run.mode={mode}", scenario) for threads in (1, 3)]
                self.assertEqual({its["services"][0]["done"] for its in told}, {count})
                self.assertEqual(told[0]["result_hash"], told[1]["result_hash"])
                self.assertEqual(told[0]["services"], told[1]["services"])

    def test_inference__that_is_cut_says_what_is_done(self):
        told = self.sim("--set", "run.limit=100ms", self.workload(ONE.replace("requests: 1,", "requests: 99,")), status=4).stdout
        self.assertRegex(told, r"  [1-9]\d? of 99 requests are done")

    def test_inference__that_cannot_be_is_refused_with_the_cure(self):
        self.refused("kind: inference", "model: there is no such model; write one of these; there are llama3-8b")
        self.refused("kind: inference, model: llama3-8b", "gpu: there is no such GPU; write one of these; there are ")
        self.refused("kind: inference, model: llama3-8b, gpu: H100", "requests: none; write trace: FILE, or requests")
        self.refused(ONE + ", request-rate: 0", "requests: none")
        self.refused(ONE + ", prefill: 4", "decode: 20 ranks from rank 0 on, in a network of 16; write fewer")
        for key in "prefill", "decode":
            self.refused(ONE + f", {key}: 0", f"{key}: none; write 1 or more")
        self.refused(ONE.replace("tp: 4", "tp: 0"), "tp: none; write 1 or more")
        self.refused(ONE.replace("requests: 1,", "requests: 1000000,").replace("101", "2000"), "requests: more than 2\\^30 tokens to decode")
        (self.place / "t.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374\n")
        self.refused(ONE + ", trace: t.csv", r"trace: .*t\.csv:2: no request; write TIMESTAMP")
        self.refused(ONE + ", trace: ./none.csv", r"trace: .*none\.csv")


if __name__ == "__main__":
    Services.build, Services.root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
