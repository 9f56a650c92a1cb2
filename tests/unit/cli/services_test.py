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


if __name__ == "__main__":
    Services.build, Services.root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
