# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All figures of the collective optimiser (docs/collective-optimiser.md), each measured by running `shardc simulate`, and for
`overlap` and `slow-link` by running compiled programs.

  collectives.py [--graphs FOLDER] [--only as-is,optimize,robust,unseen,variants,memory,inductor-memory,caps,chunks,peer,scale,overlap,slow-link]
                 [--json FILE] [--sizes 100000,1000000] [--nodes 200,1000] [--seeds 6-11]

FOLDER has graphs of training programs, GRAPH.pt2 with GRAPH.groups.json and GRAPH.durations.json, and expected.json with
reference figures and bounds (default: $SHARDC_GRAPHS, or ../shared/data/graphs). Without it only `unseen`, `scale`, `overlap` and
`slow-link` run. Steps and
peaks are simulated (sim-v1); CPU times and memory are measured: the whole process, start-up included.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("SHARDC_BUILD", ROOT / "build"))
sys.path[:0] = [str(ROOT / "test/reference"), str(ROOT / "test/models")]

import large_graph
import memory_plans
import overlap
import real_graphs
import robust_plans
import sim_v1
import slow_link
import unseen_plans

SECTIONS = ("as-is", "optimize", "robust", "unseen", "variants", "memory", "inductor-memory", "caps", "chunks", "peer", "scale", "overlap",
            "slow-link")
WITHOUT_GRAPHS = ("unseen", "scale", "overlap", "slow-link")


class Shown:
    """Prints tables and keeps their rows for --json."""

    def __init__(self):
        self.results = {}

    def section(self, name, what):
        print(f"\n== {name}: {what}", flush=True)
        self.results[name] = []
        self.rows = self.results[name]

    def row(self, **values):
        if not self.rows:
            print("".join(f"{k:>{52 if i == 0 else 16}}" for i, k in enumerate(values)))
        self.rows.append(values)
        print("".join(f"{self.text(v):>{52 if i == 0 else 16}}" for i, v in enumerate(values.values())), flush=True)

    @staticmethod
    def text(value):
        if isinstance(value, float):
            return f"{value:.2e}" if value and abs(value) < 1e-3 else f"{value:.4f}" if value < 100 else f"{value:.1f}"
        return str(value)


def measure(command):
    """Standard output, CPU seconds and peak bytes of a process."""
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([str(c) for c in command], stdout=out, stderr=subprocess.PIPE)
        problem = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise RuntimeError(f"{' '.join(map(str, command))}: {problem.decode()[-3000:]}")
        out.seek(0)
        return out.read(), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def side_files(path):
    stem = str(path.parent / path.name.split(".")[0])
    return {"groups": stem + ".groups.json", "durations": stem + ".durations.json"}


def simulate(path, *options):
    files = side_files(path)
    text, cpu, peak = measure([BUILD / "bin/shardc", "simulate", path, "--groups", files["groups"], "--durations",
                               files["durations"], "--format", "json", *options])
    figures = json.loads(text)
    figures["process_cpu_s"], figures["process_peak_bytes"] = cpu, peak
    return figures


def difference(got, want):
    """The largest relative difference over the figures that both have."""
    worst = 0.0
    for key in got.keys() & want.keys():
        if isinstance(want[key], dict):
            worst = max(worst, difference(got[key], want[key]))
        elif isinstance(want[key], (int, float)):
            worst = max(worst, abs(got[key] - want[key]) / max(abs(want[key]), 1e-3))
    return worst


def bound(want):
    return max(want["lower_bound_nolat_us"], want["critical_path_us"])


def as_is(shown, folder, expected):
    shown.section("as-is", "`--as-is` against the reference figures; the largest relative difference (goal 0.001)")
    for name, want in expected.items():
        got = simulate(folder / name, "--as-is")
        shown.row(graph=name, step_us=got["step_us"], reference_us=want["step_us"], difference=difference(got, want))


def check(folder, path, plan, flat=()):
    """What the checker beside the graphs says of a plan, or where there is none our second implementation."""
    files = side_files(path)
    if (folder / "checkplan.py").exists():
        return json.loads(measure([sys.executable, folder / "checkplan.py", path, plan, "--durations", files["durations"],
                                   "--groups", files["groups"], *flat])[0])
    read = lambda f: json.loads(pathlib.Path(f).read_text())
    return sim_v1.simulate(sim_v1.Program(path), read(files["durations"]), read(files["groups"]), read(plan), bool(flat))


def optimize(shown, folder, expected, scratch):
    shown.section("optimize", "`--optimize`: step over max(lower_bound_nolat, critical_path) (goal 1.10 Llama 2d forward, "
                              "1.05 other Llama, 1.12 DeepSeek), over Inductor's best (1), peak over the graph's (1.02), and the "
                              "difference from what the plan's checker says (0.001)")
    for name, want in expected.items():
        got = simulate(folder / name, "--optimize", "--emit", scratch / "plan.json")
        checked = check(folder, folder / name, scratch / "plan.json")
        flat = check(folder, folder / name, scratch / "plan.json", ["--flat"])["step_us"]
        # An optimised graph has the bounds of the graph it was made from.
        base = expected.get(name.split(".")[0] + ".pt2", want)
        shown.row(graph=name, before_us=want["step_us"], after_us=got["step_us"], flat_us=got["step_us_flat"],
                  over_bound=got["step_us"] / bound(base),
                  over_inductor=got["step_us"] / want["inductor_best"]["step_us"] if "inductor_best" in want else "",
                  peak=got["peak_hold_bytes"] / want["peak_hold_bytes"], buckets=got["counts"]["buckets"],
                  checker=max(difference(got, checked), abs(flat / got["step_us_flat"] - 1)), cpu_s=got["process_cpu_s"])


def robust(shown, folder, expected, scratch):
    def plan_of(path, *options):
        try:
            simulate(path, "--optimize", "--emit", scratch / "plan.json", *options)
        except RuntimeError as error:
            if "cannot be met" not in str(error):
                raise
            return None
        return json.loads((scratch / "plan.json").read_text())

    robust_plans.section(shown, folder, expected, side_files, plan_of)


def compare(*arguments):
    return json.loads(measure([BUILD / "bin/collectives-tool", *arguments])[0])


def memory(shown, folder, names):
    shown.section("memory", "step in us by `--memory-limit`, in percent of the graph's own peak, with `--robust 0`: never longer with more")
    for name in names:
        row, steps = {"graph": name}, []
        for percent in (95, 98, 100, 102, 105, 110, 120, 150, 200):
            try:
                steps.append(simulate(folder / name, "--optimize", "--robust", 0, "--memory-limit", f"{percent}%")["step_us"])
                row[f"{percent}%"] = steps[-1]
            except RuntimeError as error:
                row[f"{percent}%"] = "not met" if "cannot be met" in str(error) else "failed"
        row["monotonic"] = "yes" if all(b <= a * (1 + 1e-9) for a, b in zip(steps, steps[1:])) else "NO"
        shown.row(**row)


def caps(shown, folder, names):
    shown.section("caps", "step in us by `--caps` in MiB; `auto` over the best of them (goal 1.02)")
    for name in names:
        row = {"graph": name, "auto": simulate(folder / name, "--optimize")["step_us"]}
        for cap in (1, 2, 5, 10, 25, 50, 100, 200, 500, 1000, 2000):
            row[str(cap)] = simulate(folder / name, "--optimize", "--caps", cap)["step_us"]
        row["auto/best"] = row["auto"] / min(v for v in row.values() if isinstance(v, float))
        shown.row(**row)


def chunked(shown, folder, names):
    shown.section("chunks", "step in us with collectives and products in pieces (--chunk-collectives), over the bound of the graph in "
                            "one piece, at most 2 % more memory than the graph as it is")
    for name in names:
        whole = simulate(folder / name, "--optimize")
        bound = max(whole["lower_bound_nolat_us"], whole["critical_path_us"])
        got = simulate(folder / name, "--optimize", "--chunk-collectives", "auto")
        shown.row(graph=name, whole=whole["step_us"], step=got["step_us"], pieces=got["chunks"]["pieces"],
                  collectives=got["chunks"]["collectives"], over_bound=got["step_us"] / bound,
                  peak=got["peak_hold_bytes"] / whole["before"]["peak_hold_bytes"], cpu_s=got["process_cpu_s"])


def peer(shown, folder, names, scratch):
    shown.section("peer", "CPU seconds of PyTorch Inductor's passes alone, and of a whole `shardc simulate --optimize` process "
                          "(start-up, import, optimisation, simulation, report), in the same run (goal: 15 times less); "
                          "Inductor's steps by the same simulator")
    for name in names:
        files = side_files(folder / name)
        row = {"graph": name}
        for label, options in (("inductor", []), ("bucketing", ["--bucket"])):
            out = scratch / f"{label}.pt2"
            command = [sys.executable, ROOT / "benchmarks/inductor_collectives.py", folder / name, files["groups"],
                       files["durations"], *options, "-o", out]
            try:
                text = measure(command)[0]
                said = json.loads(text.strip().splitlines()[-1])
                row[f"{label}_cpu_s"] = said["pass_cpu_s"]
                out.rename(scratch / name)
                for kind, file in files.items():
                    (scratch / pathlib.Path(file).name).write_text(pathlib.Path(file).read_text())
                row[f"{label}_us"] = simulate(scratch / name, "--as-is")["step_us"]
            except RuntimeError as error:
                row[f"{label}_cpu_s"] = row[f"{label}_us"] = "failed"
                print(str(error).strip().splitlines()[-1], file=sys.stderr)
        ours = min((simulate(folder / name, "--optimize") for _ in range(3)), key=lambda got: got["process_cpu_s"])
        seconds = [row[k] for k in ("inductor_cpu_s", "bucketing_cpu_s") if isinstance(row[k], float)]
        shown.row(**row, shardc_cpu_s=ours["process_cpu_s"], shardc_us=ours["step_us"],
                  times_less=min(seconds) / ours["process_cpu_s"] if seconds else "")


def scale(shown, sizes, scratch):
    shown.section("scale", "generated graphs: CPU seconds of the whole process (import, optimisation, simulation, report), the "
                           "exponent of its growth from the size before (goal 1.1), and bytes of its peak for each op (goal: 2 GiB "
                           "for a million, 2147)")
    measured = []
    for ops in sizes:
        path = scratch / "layers.pt2"
        nodes = large_graph.write(-(-ops // large_graph.NODES_PER_LAYER), path)
        got = simulate(path, "--optimize")
        path.unlink()
        measured.append((nodes, got["process_cpu_s"]))
        shown.row(nodes=nodes, cpu_s=got["process_cpu_s"], exponent=exponent(*measured[-2:]) if len(measured) > 1 else "",
                  import_s=got["pass_seconds"]["import"], optimize_s=got["pass_seconds"]["optimize"],
                  over_bound=got["step_us"] / max(got["lower_bound_nolat_us"], got["critical_path_us"]),
                  peak_gib=got["process_peak_bytes"] / 2**30, bytes_per_op=round(got["process_peak_bytes"] / nodes))
    if len(measured) > 2:
        print(f"from {measured[0][0]} to {measured[-1][0]} nodes: n^{exponent(measured[0], measured[-1]):.3f}")


def overlapped(shown):
    for gradients, what in ((False, "fully sharded weights of {} layers"), (True, "gradients of {} layers under data parallelism")):
        measured = overlap.report(gradients=gradients)
        shown.section("overlap", what.format(measured["layers"]) + f" on {measured['ranks']} ranks over a link of "
                      f"{measured['link_ms'] / measured['compute_ms']:.0%} of the compute time: the part of it that is hidden "
                      f"(at most {measured['bound']:.2f}; goal for `default`: 0.9 of that), what the cost model says, and the step "
                      "without a link over the unscheduled program's (1); predicted and measured order of variants "
                      + ("agree" if measured["same_order"] else "DIFFER"))
        for name, got in measured["variants"].items():
            shown.row(variant=name, hidden=got["hidden"], of_bound=got["of_bound"], predicted=got["predicted"],
                      without_link=got["without_link"], step_ms=got["step_ms"], over_link_ms=got["step_over_link_ms"])


def slowed(shown):
    for gradients, ahead in ((False, None), (False, 3), (True, None)):
        measured = slow_link.report(gradients=gradients, ahead=ahead)
        limit = "the limit of compile" if ahead is None else f"room for {ahead} gathered weights"
        shown.section("slow-link", f"{'gradients' if gradients else 'fully sharded weights'} of {measured['layers']} layers on {measured['ranks']} "
                      f"ranks, planned for a link of {measured['planned_link_ms'] / measured['compute_ms']:.0%} of the compute time and run over "
                      f"one that is {measured['link_ms'] / measured['planned_link_ms']:g} times as slow, under {limit}: the part of its time that "
                      f"is hidden (no program hides more than {measured['bound']:.2f}), over that of the plan that is made for it, over the most that "
                      "any plan hides, and over that bound (goal for `robust`: 0.8); and by the cost model")
        for name, got in measured["plans"].items():
            shown.row(plan=name, **{key: got[key] for key in ("hidden", "of_own", "of_best", "of_bound", "predicted", "predicted_of_own", "peak_bytes")})


def exponent(smaller, larger):
    return math.log(larger[1] / smaller[1]) / math.log(larger[0] / smaller[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=pathlib.Path, default=real_graphs.FOLDER)
    parser.add_argument("--only", default=",".join(SECTIONS), help="which sections, with commas between")
    parser.add_argument("--sizes", default="100000,300000,1000000", help="nodes of the generated graphs, with commas between")
    parser.add_argument("--nodes", default="200,1000,4000,8000", help="nodes of the graphs of `unseen`, with commas between")
    parser.add_argument("--seeds", default="0-5", help="seeds of the graphs of `unseen`: the first and the last")
    parser.add_argument("--json", type=pathlib.Path, help="write all rows to this file")
    args = parser.parse_args()
    sections = args.only.split(",")
    if unknown := set(sections) - set(SECTIONS):
        parser.error(f"unknown sections {', '.join(sorted(unknown))}; known are {', '.join(SECTIONS)}")
    first, _, last = args.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    shown = Shown()
    have = (args.graphs / "expected.json").exists()
    if not have:
        print(f"no graphs in {args.graphs}: only {', '.join(WITHOUT_GRAPHS)} can run", file=sys.stderr)
    expected = json.loads((args.graphs / "expected.json").read_text()) if have else {}
    names = [name for name in expected if "inductor_best" in expected[name]]
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        steps = {"as-is": lambda: as_is(shown, args.graphs, expected),
                 "optimize": lambda: optimize(shown, args.graphs, expected, scratch),
                 "robust": lambda: robust(shown, args.graphs, expected, scratch),
                 "unseen": lambda: unseen_plans.section(shown, compare, [int(size) for size in args.nodes.split(",")], seeds),
                 "variants": lambda: unseen_plans.variants(shown, compare, [args.graphs / name for name in names]),
                 "memory": lambda: memory(shown, args.graphs, names),
                 "inductor-memory": lambda: memory_plans.section(shown, args.graphs, expected, simulate),
                 "caps": lambda: caps(shown, args.graphs, names),
                 "chunks": lambda: chunked(shown, args.graphs, names),
                 "peer": lambda: peer(shown, args.graphs, names, scratch),
                 "scale": lambda: scale(shown, [int(size) for size in args.sizes.split(",")], scratch),
                 "overlap": lambda: overlapped(shown), "slow-link": lambda: slowed(shown)}
        for section in SECTIONS:
            if section in sections and (have or section in WITHOUT_GRAPHS):
                steps[section]()
    if args.json:
        args.json.write_text(json.dumps(shown.results, indent=1))


if __name__ == "__main__":
    main()
