# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The section `robust` of collectives.py: plans of `shardc simulate --optimize` replayed where times are not those that they were
made for, beside the defensive schedules, Inductor's graph and plans that were made for that very network."""
import json

import sim_v1

NETWORKS = (1, 1.2, 1.25, 1.5, 2)
SPREAD, SEEDS = 0.2, range(1, 6)
SCENARIOS = {f"x{n:g}": {"network": n} for n in NETWORKS} | {f"jitter {s}": {"seed": s} for s in SEEDS}
DEFENSIVE = {"defensive": ("--policy", "defensive", "--bucket=false"), "defensive, buckets": ("--policy", "defensive")}


class Replays:
    """Replays of plans of one graph, by our second implementation of the model."""

    def __init__(self, path, groups, durations, plan_of):
        """`plan_of(*options)` runs `shardc simulate --optimize` on the graph and returns the plan, or None where it is refused."""
        read = lambda file: json.loads(open(file).read())
        self.program, self.groups, self.durations, self.plan_of = sim_v1.Program(path), read(groups), read(durations), plan_of

    def step(self, scenario, plan=None, program=None):
        durations = sim_v1.jittered(self.durations, SPREAD, scenario["seed"]) if "seed" in scenario else self.durations
        return sim_v1.simulate(program or self.program, durations, self.groups, plan, network=scenario.get("network", 1))

    def steps(self, plan=None, program=None):
        return {name: self.step(scenario, plan, program)["step_us"] for name, scenario in SCENARIOS.items()}

    def table(self, inductor=None):
        """Rows: our steps in ms, and how many times as long they are as those of each other plan. `inductor` is the path of
        Inductor's graph; then its peak is a limit as well."""
        limits = {"default limit": ()}
        others = {}
        if inductor:
            program = sim_v1.Program(inductor)
            others["inductor"] = self.steps(program=program)
            peak = self.step({}, program=program)["peak_hold_bytes"]
            limits["its peak"] = ("--memory-limit", peak)
        for limit, options in limits.items():
            plan = self.plan_of(*options)
            if plan is None:
                yield limit, "ours", None
                continue
            ours = self.steps(plan)
            yield limit, "ours, ms", {name: us / 1e3 for name, us in ours.items()}
            for name, more in DEFENSIVE.items():
                if (defensive := self.plan_of(*more, *options)) is not None:
                    others[name] = self.steps(defensive)
            own = {}
            for name, scenario in SCENARIOS.items():
                if "network" in scenario:
                    made = self.plan_of("--network", scenario["network"], "--robust", 0, *options)
                    own[name] = self.step(scenario, made)["step_us"] if made is not None else float("nan")
            for name, steps in (others | {"for that network": own}).items():
                yield limit, "over " + name, {s: us / steps[s] if s in steps else "" for s, us in ours.items()}


def section(shown, folder, expected, side_files, plan_of):
    """`plan_of(path, *options)` as above."""
    shown.section("robust", "plans replayed on networks that are x1.2 to x2 as slow, and with kernels that are off by up to 20 % (five "
                            "seeds): steps in ms, and over those of others (goals: 1.00 for the defensive schedules, and for Inductor's "
                            "graph at its peak; 1.03, 1.05 and 1.08 at x1.2, x1.5 and x2 for plans made for that network)")
    for name in (n for n in expected if "inductor_best" in expected[n]):
        files = side_files(folder / name)
        after = f"{name.removesuffix('.pt2')}.inductor_{expected[name]['inductor_best']['config']}.pt2"
        replays = Replays(folder / name, files["groups"], files["durations"], lambda *o, n=name: plan_of(folder / n, *o))
        for limit, what, row in replays.table(folder / after if (folder / after).exists() else None):
            shown.row(graph=f"{name} {limit}: {what}", **(row or {s: "refused" for s in SCENARIOS}))
