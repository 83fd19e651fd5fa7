# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs groups of checks and measurements on the device, each in a process of its own, and writes what they found after each:
DIR/GROUP.json, DIR/GROUP.log and DIR/summary.md. The exit status is not 0 if a figure missed its limit or is missing."""
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

from measure import Report, table  # noqa: E402

# In this order: what decides whether other figures mean anything comes first.
GROUPS = ("abi", "answers", "ranks", "gemm", "rows", "attention", "models", "sanitize")
# Those that need no GPU.
EMULATED = ("abi", "answers", "ranks")
# What one group may take of the whole, at most.
SHARES = {"abi": 0.15, "answers": 0.3, "ranks": 0.25, "gemm": 0.2, "rows": 0.2, "attention": 0.2, "models": 0.5,
          "sanitize": 0.3}


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


def group_command(group, folder, out, device, seconds):
    return [sys.executable, str(HERE / "run.py"), "--group", group, "--folder", str(folder), "--out", str(out),
            "--device", device, "--budget", f"{seconds:.0f}"]


def run_group(group, folder, out, device, seconds):
    """The report of the group, also where its process failed: that is a figure then."""
    path = out / f"{group}.json"
    path.unlink(missing_ok=True)
    problem = None
    with open(out / f"{group}.log", "w") as log:
        try:
            # The group ends itself in time; the rest is for one that hangs.
            done = subprocess.run(group_command(group, folder, out, device, seconds), stdout=log, stderr=subprocess.STDOUT,
                                  timeout=seconds + 15)
            if done.returncode:
                problem = f"the process ended with {done.returncode}; see {group}.log"
        except subprocess.TimeoutExpired:
            problem = f"not done after {seconds + 15:.0f} s; see {group}.log"
    report = Report.from_json(json.loads(path.read_text())) if path.exists() else Report(group)
    report.check("completed", problem)
    report.write(path)
    return report


def summary(facts, reports, missing):
    gpus = ", ".join(f"{g['name']} ({g['memory']}, driver {g['driver']})" for g in facts["gpus"]) or "no GPU"
    text = f"{facts['date']}, device {facts['device']}: {gpus}\n\n" + table(reports)
    if missing:
        text += f"\nNot run, as the budget was used up: {', '.join(missing)}\n"
    misses = sum(len(r.failed) for r in reports) + len(missing)
    return text + f"\n{misses} misses\n", misses


def run_all(groups, folder, out, device, budget):
    out.mkdir(parents=True, exist_ok=True)
    facts = machine(device)
    (out / "machine.json").write_text(json.dumps(facts, indent=1))
    end, reports, missing, misses = time.monotonic() + budget, [], list(groups), 0
    for group in groups:
        left = end - time.monotonic()
        # A group alone may take all.
        seconds = min(left - 15, budget * (SHARES[group] if len(groups) > 1 else 1))
        if seconds < 10:
            break
        print(f"== {group} (at most {seconds:.0f} s)", flush=True)
        reports.append(run_group(group, folder, out, device, seconds))
        missing.remove(group)
        text, misses = summary(facts, reports, missing)
        (out / "summary.md").write_text(text)
        print(table(reports[-1:]), flush=True)
    text, misses = summary(facts, reports, missing)
    (out / "summary.md").write_text(text)
    print(text.splitlines()[-1])
    return misses


def one_group(group, folder, out, device, seconds):
    """In a process of its own. A report is kept up to where the time ended or a part failed."""
    import importlib

    import context
    report = Report(group)
    it = context.Context(folder, out, device, time.monotonic() + seconds, report)
    try:
        importlib.import_module(f"group_{group}").run(it)
    finally:
        report.write(out / f"{group}.json")


def main(arguments):
    parser = argparse.ArgumentParser(prog="gpu.sh run", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="group", help=f"of {', '.join(GROUPS)} (default: all)")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for results")
    parser.add_argument("--budget", type=float, default=540, help="seconds for all groups")
    parser.add_argument("--device", default="0", help="number of the GPU, or 'emulated'")
    parser.add_argument("--folder", type=pathlib.Path, default=HERE.parent, help="what `pack` made")
    parser.add_argument("--group", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if not (args.folder / "pack.json").exists():
        raise SystemExit(f"error: {args.folder} is no folder that `gpu.sh pack` made: it has no pack.json")
    folder, out = args.folder.resolve(), args.out.resolve()
    if args.group:
        return one_group(args.group, folder, out, args.device, args.budget)
    try:
        groups = choose(args.groups, args.device)
    except ValueError as error:
        raise SystemExit(f"error: {error}") from None
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    return 1 if run_all(groups, folder, out, args.device, args.budget) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
