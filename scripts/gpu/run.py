# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs groups of checks and measurements on the device, each in a process of its own, and writes what they found after each:
DIR/GROUP.json, DIR/GROUP.log, and all of them as DIR/results.json and DIR/summary.md. The exit status is not 0 if a figure missed its limit or is missing."""
import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import commands  # noqa: E402
from measure import Report, table  # noqa: E402

# In this order: what decides whether other figures mean anything comes first.
GROUPS = ("abi", "answers", "ranks", "gemm", "rows", "attention", "models", "gpus", "sanitize")
# Those that need no GPU.
EMULATED = ("abi", "answers", "ranks")
SLACK = 10  # seconds
# What one group may take of the whole, at most.
SHARES = {"abi": 0.15, "answers": 0.25, "ranks": 0.25, "gemm": 0.15, "rows": 0.15, "attention": 0.15, "models": 0.5,
          "gpus": 0.2, "sanitize": 0.3}


def choose(asked, device):
    """The groups to run, in order; an unknown name, or one that cannot run there, is an error."""
    possible = EMULATED if device == "emulated" else GROUPS
    unknown = [g for g in asked if g not in GROUPS]
    if unknown:
        raise ValueError(f"there are no groups {', '.join(unknown)}: choose from {', '.join(GROUPS)}")
    impossible = [g for g in asked if g not in possible]
    if impossible:
        raise ValueError(f"{', '.join(impossible)} cannot run on the emulated device: {', '.join(EMULATED)} can")
    return [g for g in possible if not asked or g in asked]


def machine(device):
    facts = {"host": platform.machine(), "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "device": device}
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
                              text=True, capture_output=True, timeout=60)
        facts["gpus"] = parse_gpus(done.stdout) if done.returncode == 0 else []
    except (OSError, subprocess.TimeoutExpired):
        facts["gpus"] = []
    return facts


def parse_gpus(text):
    """Lines of nvidia-smi: name, driver, memory."""
    fields = [[part.strip() for part in line.split(",")] for line in text.splitlines() if line.count(",") == 2]
    return [{"name": name, "driver": driver, "memory": memory} for name, driver, memory in fields]


def group_command(group, folder, out, device, end):
    """`end` is on the clock of time.monotonic, which processes share: a group that starts slowly has less time."""
    return [sys.executable, str(HERE / "run.py"), "--group", group, "--folder", str(folder), "--out", str(out),
            "--device", device, "--end", f"{end:.1f}"]


def run_group(group, folder, out, device, seconds, environment=None):
    """The report of the group, also where its process failed: that is a figure then, beside those that it had written."""
    path = out / f"{group}.json"
    path.unlink(missing_ok=True)
    with open(out / f"{group}.log", "w") as log:
        # The group ends itself in time; the rest is for one that hangs.
        command = group_command(group, folder, out, device, time.monotonic() + seconds)
        status = commands.into_file(command, seconds + SLACK, log, env=os.environ | (environment or {}))
    problem = {0: None, 124: f"not done after {seconds + SLACK:.0f} s; see {group}.log"}.get(
        status, f"the process ended with {status}; see {group}.log")
    report = Report.from_json(json.loads(path.read_text())) if path.exists() else Report(group)
    report.check("completed", problem)
    report.write(path)
    return report


def summary(facts, reports, missing):
    """Every figure with its limit; docs/benchmarks.md is filled in from it."""
    gpus = ", ".join(f"{g['name']} ({g['memory']}, driver {g['driver']})" for g in facts["gpus"]) or "no GPU"
    text = f"{facts['date']}, device {facts['device']}: {gpus}; commit {facts['commit'][:12]}\n\n" + table(reports)
    if missing:
        text += f"\nNot run, as the budget was used up: {', '.join(missing)}\n"
    misses = sum(len(r.failed) for r in reports) + len(missing)
    return text + f"\n{misses} misses\n", misses


def write(out, facts, reports, missing):
    text, misses = summary(facts, reports, missing)
    (out / "summary.md").write_text(text)
    data = {"machine": facts, "groups": [r.as_json() for r in reports], "missing": missing, "misses": misses}
    (out / "results.json").write_text(json.dumps(data, indent=1))
    return misses


def run_all(groups, folder, out, device, budget):
    end, reports, missing = time.monotonic() + budget, [], list(groups)
    out.mkdir(parents=True, exist_ok=True)
    pack = json.loads((folder / "pack.json").read_text())
    facts = machine(device) | {"commit": pack["commit"], "target": pack["target"]}
    environment = commands.machine_needs(pack, folder)
    misses = write(out, facts, reports, missing)
    for group in groups:
        left = end - time.monotonic() - SLACK
        # A group alone may take all.
        seconds = min(left, budget * (SHARES[group] if len(groups) > 1 else 1))
        if seconds < 10:
            break
        print(f"== {group} (at most {seconds:.0f} s)", flush=True)
        reports.append(run_group(group, folder, out, device, seconds, environment))
        missing.remove(group)
        misses = write(out, facts, reports, missing)
        print(table(reports[-1:]), flush=True)
    print(f"{misses} misses")
    return misses


def one_group(group, folder, out, device, end):
    """In a process of its own. The report is kept up to where the time ended or a part failed."""
    import importlib

    import context
    report = Report(group, out / f"{group}.json")
    it = context.Context(folder, out, device, end, report)
    importlib.import_module(f"group_{group}").run(it)


def main(arguments):
    parser = argparse.ArgumentParser(prog="gpu.sh run", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="group", help=f"of {', '.join(GROUPS)} (default: all)")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for results")
    parser.add_argument("--budget", type=float, default=540, help="seconds for all groups")
    parser.add_argument("--device", default="0", help="number of the GPU, or 'emulated'")
    parser.add_argument("--folder", type=pathlib.Path, default=HERE.parent, help="what `pack` made")
    parser.add_argument("--group", help=argparse.SUPPRESS)
    parser.add_argument("--end", type=float, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if not (args.folder / "pack.json").exists():
        raise SystemExit(f"error: {args.folder} is no folder that `gpu.sh pack` made: it has no pack.json")
    folder, out = args.folder.resolve(), args.out.resolve()
    if args.group:
        return one_group(args.group, folder, out, args.device, args.end)
    try:
        groups = choose(args.groups, args.device)
    except ValueError as error:
        raise SystemExit(f"error: {error}") from None
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    try:
        return 1 if run_all(groups, folder, out, args.device, args.budget) else 0
    except RuntimeError as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
