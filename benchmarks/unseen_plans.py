# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sections `unseen` and `variants` of collectives.py: plans of graphs that the optimiser was not made with, beside plans that were
made for one network alone and the defensive ones, and which misses are proved to be no plan's fault."""

FAMILIES = ("fsdp-forward", "fsdp-backward", "tensor-parallel", "tensor-backward", "experts", "pipeline", "data-parallel",
            "two-dimensional", "two-dim-backward", "random")
GOALS = {"x1": 1.005, "x1.2": 1.03, "x1.5": 1.05, "x2": 1.08, "defensive": 1}
WHAT = ("our step over that of a plan made for that very network (goals 1.005, 1.03, 1.05, 1.08) and over the defensive ones on all "
        "networks and with jitter (1): the worst; how many graphs miss a goal; for how many of these a lower bound proves that the "
        "goals contradict each other, so that no plan reaches them")
ROUNDING = 1e-6

# Networks and kernels of other speed, kernels that are each up to so much faster or slower, other memory limits and machines.
VARIANTS = ([{"network": network} for network in (0.25, 0.5, 2, 4)] + [{"kernels": 0.5}]
            + [{"spread": spread, "seed": seed} for spread in (0.3, 0.6) for seed in (1, 2)]
            + [{"spread": 0.5, "seed": 3, "network": network} for network in (0.5, 2)]
            + [{"limit": limit} for limit in (1, 1.2)] + [{"topology": "h100-64"}, {"topology": "h100-64", "network": 4}])


class Count:
    def __init__(self):
        self.graphs = self.reached = self.proved = 0

    def row(self, shown, label, rows):
        """`rows` are what collectives-tool says of each graph, with `what` for the name of one that is missed."""
        planned = [row for row in rows if not row["error"]]
        missed = [row for row in planned if not row["reached"]]
        proved = [row for row in missed if row["least over goal"] > 1]
        self.graphs += len(rows)
        self.reached += len(planned) - len(missed)
        self.proved += len(proved)
        shown.row(**label, graphs=len(rows), refused=len(rows) - len(planned),
                  **{name: max((row[name] for row in planned), default="") for name in GOALS},
                  missed=len(missed), proved=len(proved))
        for row in missed:
            over = ", ".join(f"{name} {row[name]:.4f}" for name, goal in GOALS.items() if row[name] > goal * (1 + ROUNDING))
            why = (f"proved: no plan has less than {row['least over goal']:.4f} of what the goals allow" if row in proved
                   else "a plan that reaches all goals is neither known nor excluded")
            print(f"    {row['what']}: {over}; {why}", flush=True)

    def say(self):
        print(f"{self.reached} of {self.graphs} graphs reach all goals; of the others the goals contradict each other in {self.proved}, "
              f"and {self.graphs - self.reached - self.proved} are open", flush=True)


def section(shown, compare, sizes, seeds):
    shown.section("unseen", "generated graphs of each family of parallelism (test/unit/passes/collectives/UnseenGraphs.h), of "
                            f"{', '.join(map(str, sizes))} nodes with {len(seeds)} seeds each: {WHAT}")
    count = Count()
    for family in FAMILIES:
        rows = [compare("unseen", f"family={family}", f"seed={seed}", f"nodes={size}") | {"what": f"{size} nodes, seed {seed}"}
                for size in sizes for seed in seeds]
        count.row(shown, {"family": family}, rows)
    count.say()


def variants(shown, compare, paths):
    shown.section("variants", "the graphs of training programs on other networks, with kernels of other times, under other limits and on "
                              f"another machine, {len(VARIANTS)} variants each: {WHAT}")
    count = Count()
    for path in paths:
        rows = []
        for variant in VARIANTS:
            options = [f"{name}={value}" for name, value in variant.items()]
            rows.append(compare("variant", path, *options) | {"what": " ".join(options)})
        count.row(shown, {"graph": path.name}, rows)
    count.say()
