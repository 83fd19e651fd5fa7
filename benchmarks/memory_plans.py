# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The section `inductor-memory` of collectives.py: what plans of `shardc simulate --optimize` do with memory, beside Inductor's graph
after its own optimisation, where communication bounds the step and where it does not."""

# Kernels keep the times of an H100 (the durations): on `cpu-local` almost all of a step is communication.
CASES = [(topology, network) for topology in ("sim-v1", "h100-64", "cpu-local") for network in (1, 2)]


def rows(path, after, step):
    """For each topology and network: steps at the graph's own peak, at 115 % of it and at Inductor's peak, over the step of
    Inductor's graph, and that graph, planned under the peak of the original, over its own step. `step(path, *options)` runs `shardc simulate`
    and returns its report."""
    for topology, network in CASES:
        where = ("--topology", topology, "--network", network)
        original, inductor = step(path, *where), step(after, *where)
        own, most = original["peak_hold_bytes"], inductor["peak_hold_bytes"]
        row = {"topology": topology, "network": f"x{network}", "its_peak": most / own}
        for name, limit in {"100%": "100%", "115%": "115%", "at its peak": most}.items():
            got = step(path, *where, "--optimize", "--memory-limit", limit)
            row[name] = got["step_us"] / inductor["step_us"]
        again = step(after, *where, "--optimize", "--memory-limit", own)
        row["its graph"] = again["step_us"] / inductor["step_us"]
        bound = max(original["lower_bound_nolat_us"], original["critical_path_us"])
        row["115% of bound"] = row["115%"] * inductor["step_us"] / bound
        yield row


def section(shown, folder, expected, step):
    shown.section("inductor-memory", "steps over that of Inductor's graph (goal 1) under three memory limits, and of Inductor's graph planned "
                                     "within the peak of the original; with the kernels of an H100 `cpu-local` is bound by communication")
    for name in (n for n in expected if "inductor_best" in expected[n]):
        after = folder / f"{name.removesuffix('.pt2')}.inductor_{expected[name]['inductor_best']['config']}.pt2"
        if after.exists():
            for row in rows(folder / name, after, step):
                shown.row(graph=name, **row)
