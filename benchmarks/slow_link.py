# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What plans are worth where the network is slower than the one that they were made for, measured: the programs of overlap.py (a forward
whose weights are gathered layer by layer, or with `--gradients` a backward whose gradients are all-reduced), compiled for a machine that
is described by its kernels' times as measured here and a link that takes `--share` of the compute time, and run on four ranks over a link
(SHARDRT_LINK) that takes `--network` times as long. Prints one JSON object.

    .venv/bin/python benchmarks/slow_link.py --share 0.3 --network 2

Plans are `robust` (the default), `nominal` (--robust 0), `defensive` (--policy defensive, without buckets) and `defensive, buckets`. `hidden`
is the part of the slow link's time during which some rank computed, from the traces, and `predicted` what the cost model says of it.
What can be hidden is said in three ways: `of_own` is `hidden` over that of the plan that is made for the slow link in the same way, `of_best`
over the most that any of the plans hides, and `of_bound` over what no program hides more of: all transfers but one, each behind as much compute as
there is for it. Each is a median over rounds, in which all plans take turns; on a busy machine, where ranks wait for each other, only `of_own` and
`of_best` say something. `peak_bytes` is what a rank takes. The memory limit is that of `shardc compile`: the program as placed plus 2 %, and
two gathered weights where they make the step 1 % shorter; with `--ahead N` it is the program as placed and N gathered
weights for all."""
import argparse
import json
import pathlib
import statistics
import tempfile

import overlap
from overlap import BUILD, call

# Options of the pipeline that optimises collectives.
POLICIES = {"robust": "", "nominal": "robust=0", "defensive": "policy=defensive bucket=false", "defensive, buckets": "policy=defensive"}


def planned(variants):
    """Programs of overlap.py that are planned for a link and for a slower one."""

    class Planned(variants):
        def by_hand(self, local):
            return {}

        def __init__(self, folder, layers, width, rows, share, network, ahead=None):
            super().__init__(folder, layers, width, rows, share)
            machines = {"link": self.folder / "machine", "slow": self.folder / "slow-machine"}
            self.set_link(network * self.transfer_us)
            machines["slow"].write_text(self.machine())
            placed = self.simulated(self.folder / "stages/3-local.mlir")
            # Both by the cost model: bytes, and the compute time of the machine that is described.
            self.compute_us = placed["compute_us"]
            limit = "" if ahead is None else f"memory-limit={placed['peak_hold_bytes'] + ahead * width * width * 4}"
            self.artifacts, self.simulation = {"unscheduled": self.artifacts["unscheduled"]}, {}
            for policy, options in POLICIES.items():
                for name, machine in machines.items():
                    plan = f"{policy} for {name}"
                    self.artifacts[plan] = self.folder / f"{plan}.so"
                    program = self.folder / f"{plan}.mlir"
                    call(BUILD / "bin/shard-opt", self.folder / "stages/3-local.mlir", "-o", program, "--mlir-print-debuginfo",
                         f"--shardc-optimize-collectives=topology={machine} {options} {limit}")
                    call(BUILD / "bin/shardc", "compile", program, "--topology", machine, "-o", self.artifacts[plan])
                    self.simulation[plan] = self.simulated(program)

        def simulated(self, program):
            """A program as it is on the slow link, by the cost model."""
            return json.loads(call(BUILD / "bin/shardc", "simulate", program, "--entry", self.entry, "--topology",
                                   self.folder / "slow-machine", "--format", "json"))

        @property
        def link_us(self):
            return self.layers * self.transfer_us

        @property
        def bound(self):
            return super().bound * min(1, self.compute_us / self.link_us)

        def predicted_hidden(self, name):
            return 1 - self.simulation[name]["exposed_us"]["total"] / self.link_us

    return Planned


def report(layers=12, width=1024, rows=1024, steps=4, rounds=5, share=0.3, network=2.0, ahead=None, gradients=False):
    hidden = {}
    with tempfile.TemporaryDirectory() as folder:
        program = planned(overlap.Gradients if gradients else overlap.Variants)
        variants = program(pathlib.Path(folder), layers, width, rows, share, network, ahead)
        variants.check()
        for _ in range(rounds):
            for name in variants.simulation:
                hidden.setdefault(name, []).append(variants.hidden(name, steps))
        median = {name: statistics.median(values) for name, values in hidden.items()}
        best = max(median.values())
        result = {"ranks": overlap.WORLD, "layers": layers, "compute_ms": variants.compute_us / 1e3, "link_ms": variants.link_us / 1e3,
                  "planned_link_ms": variants.link_us / 1e3 / network, "weights_ahead": "as compile" if ahead is None else ahead,
                  "bound": variants.bound, "plans": {}}
        for policy in POLICIES:
            name, own = f"{policy} for link", f"{policy} for slow"
            predicted = {plan: variants.predicted_hidden(plan) for plan in (name, own)}
            result["plans"][policy] = {
                "hidden": median[name], "of_own": part(median[name], median[own]), "of_best": part(median[name], best),
                "of_bound": median[name] / variants.bound, "predicted": predicted[name], "predicted_of_own": part(predicted[name], predicted[own]),
                "peak_bytes": variants.simulation[name]["peak_hold_bytes"], "rounds": sorted(hidden[name])}
    return result


def part(some, whole):
    """Some over the whole; where nothing is hidden, nothing is lost."""
    return some / whole if whole > 1e-3 else 1.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--rows", type=int, default=1024, help="of the whole batch")
    parser.add_argument("--steps", type=int, default=4, help="in one process")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each plan, taking turns")
    parser.add_argument("--share", type=float, default=0.3, help="the time of the link that is planned for over the compute time")
    parser.add_argument("--network", type=float, default=2, help="how many times as long the link takes that the plans run over")
    parser.add_argument("--ahead", type=int, help="how many gathered weights may be held beside the program as placed (default: as compile has it)")
    parser.add_argument("--gradients", action="store_true", help="the backward under data parallelism")
    print(json.dumps(report(**vars(parser.parse_args())), indent=1))


if __name__ == "__main__":
    main()
