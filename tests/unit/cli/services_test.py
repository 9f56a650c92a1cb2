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


if __name__ == "__main__":
    Services.build, Services.root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
