# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a machine's cost model of what was measured on it: the text that `shardc --topology FILE` reads
(passes/cost/core/TargetDescription.h). Every number is measured; what was not is left out, or is an error that names it."""
import argparse
import collections
import json
import pathlib
import re
import sys

TYPES = ("f32", "bf16", "f16")


def figures(results, group):
    """{name: value} of a group, without those that were not measured."""
    return {f["name"]: f["value"] for g in results["groups"] if g["group"] == group for f in g["figures"] if f["value"] is not None}


def line_through(points):
    """Latency in us and GB/s of (bytes, us): a message of the smallest size, and what each byte of the two largest adds."""
    points = sorted(points)
    (before, short), (after, long) = points[-2:]
    if long <= short:
        raise ValueError(f"{after} bytes took {long:g} us, no longer than {before} bytes")
    rate = (after - before) / (long - short)  # bytes a microsecond
    return max(points[0][1] - points[0][0] / rate, 0.0), rate * 1e-3


def collectives(results):
    """{(kind, ranks): [(bytes, us)]}, of bus bandwidths as nccl-tests counts them."""
    found = collections.defaultdict(list)
    for name, value in figures(results, "gpus").items():
        match = re.fullmatch(r"(\w+) of ([0-9.e+-]+) MiB, (\d+) GPUs: bus bandwidth", name)
        if match:
            kind, size, world = match[1], float(match[2]) * 2**20, int(match[3])
            share = (world - 1) / world * (2 if kind == "all_reduce" else 1)
            found[kind, world].append((round(size), size * share / value * 1e-3))
    return found


def describe(results, name):
    machine, gpus = results["machine"], results["machine"]["gpus"]
    if not gpus:
        raise ValueError("these results are of a machine without a GPU")
    rows, gemm = figures(results, "rows"), figures(results, "gemm")
    peaks = {kind: max((v for n, v in gemm.items() if n.startswith(f"gemm_{kind}_") and n.endswith(": rate")), default=None)
             for kind in TYPES}
    wanted = {"the copy's rate (group rows)": rows.get("copy"), "a launch (group rows)": rows.get("launch of a kernel in a graph"),
              **{f"a product of {kind} (group gemm)": peak for kind, peak in peaks.items()}}
    if missing := [what for what, value in wanted.items() if value is None]:
        raise ValueError(f"not measured: {', '.join(missing)}")
    links = collectives(results)
    if len(gpus) > 1 and not any(kind == "all_gather" for kind, _ in links):
        raise ValueError("not measured: all_gather between several GPUs (group gpus)")
    lines = [f"# Measured on {gpus[0]['name']}, driver {gpus[0]['driver']}, {machine['date']}, by scripts/gpu.sh of {machine['commit'][:12]}.",
             f"name = {name}", f"ranks_per_node = {len(gpus) if links else 1}", f"memory_gb_per_s = {rows['copy']:.4g}",
             f"launch_us = {rows['launch of a kernel in a graph']:.3g}"]
    lines += [f"peak_tflops {kind} = {peak:.4g}" for kind, peak in peaks.items()]
    for kind in dict.fromkeys(kind for kind, _ in sorted(links)):
        lines.append(f"[{kind} intra algbw]")
        for world, points in sorted((world, points) for (other, world), points in links.items() if other == kind):
            latency, rate = line_through(points)
            lines.append(f"{world} {latency:.3g} {rate:.4g}")
    for (kind, world), points in sorted(links.items()):
        lines += [f"[measured {kind} {world}]", *(f"{size} {us:.4g}" for size, us in sorted(points))]
    return "\n".join(lines) + "\n"


def main(arguments):
    parser = argparse.ArgumentParser(prog="gpu.sh cost-model", description=__doc__)
    parser.add_argument("results", type=pathlib.Path, help="the folder that `run` wrote")
    parser.add_argument("--name", required=True, help="of the machine, h200-1 say")
    args = parser.parse_args(arguments)
    try:
        print(describe(json.loads((args.results / "results.json").read_text()), args.name), end="")
    except (OSError, ValueError) as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main(sys.argv[1:])
