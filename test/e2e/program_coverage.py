# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which of the importer's overloads random programs have reached, and what several runs found together:

    python test/e2e/program_coverage.py RESULTS.json...        # of `random_programs.py --json`
"""
import collections
import json
import pathlib
import re
import sys

from conftest import ROOT

# Overloads that no such program can have: other devices', what only PyTorch's own autograd writes, checks, collectives, and
# views that are no ops of a program without collectives.
ELSEWHERE = re.compile(r"cudnn_|miopen_|_batch_norm_with_update|_batch_norm_no_update|_scaled_dot_product_flash|^ATEN_DROPPED|^ATEN_VIEW|^C10D|lift_fresh_copy|\b_assert")


def known():
    """Overloads of the importer that random programs can have, such as `add.Tensor`."""
    text = (ROOT / "importers/torch_export/schema/Overloads.def").read_text()
    lines = re.findall(r"^(?:ATEN|PRIM|C10D)\w*\(.*", text, re.M)
    return [re.search(r"\((\w+\.\w+)", line)[1] for line in lines if not ELSEWHERE.search(line)]


def overloads(exported):
    """What an exported program calls, by name. An update in place is one of its functional form."""
    names = [str(node.target).partition(".")[2] for node in exported.graph.nodes if node.op == "call_function" and hasattr(node.target, "overloadpacket")]
    return collections.Counter(names)


def unreached(reached):
    functional = {re.sub(r"(?<=[a-z0-9])_\.", ".", name) for name in reached}
    return [name for name in known() if name not in reached and name not in functional]


class Record:
    """What a run has found so far, in a file. `refused`: whether a problem is no wrong answer; `reached`: calls by overload."""

    def __init__(self, path, kind, refused, reached):
        self.path, self.refused, self.reached = path, refused, reached
        self.found = {"kind": kind, "agree": 0, "skipped": 0, "lines": 0, "elements": 0, "refused": [], "wrong": []}

    def keep(self, tried, programs, bad):
        found, worst = self.found, {id(program) for program, _ in bad}
        for program, problem in bad:
            found["refused" if self.refused(problem) else "wrong"].append([program.seed, problem])
        good = [program for program in programs if id(program) not in worst]
        found["agree"] += len(good)
        found["skipped"] += tried - len(programs)
        found["lines"] += sum(len(p.source.lines) for p in good)
        found["elements"] += sum(w.numel() for p in good for w in p.wants)
        if self.path:
            self.path.write_text(json.dumps(found | {"reached": self.reached}, indent=1))


def main():
    runs = [json.loads(pathlib.Path(name).read_text()) for name in sys.argv[1:]]
    reached = sum((collections.Counter(run["reached"]) for run in runs), collections.Counter())
    for key in ("wrong", "refused"):
        for run in runs:
            for seed, problem in run[key]:
                print(f"{key} {run['kind']} {seed}: {' '.join(problem.split())[:400]}")
    for kind in sorted({run["kind"] for run in runs}):
        of = [run for run in runs if run["kind"] == kind]
        print(f"{kind or 'plain'}: {sum(r['agree'] for r in of)} agree, {sum(len(r['refused']) for r in of)} refused, {sum(len(r['wrong']) for r in of)} wrong, "
              f"{sum(r['skipped'] for r in of)} have no steady answer, {sum(r['lines'] for r in of)} lines, {sum(r['elements'] for r in of)} numbers compared")
    never = unreached(reached)
    print(f"{len(known()) - len(never)} of {len(known())} overloads reached, {sum(reached.values())} calls; never: {', '.join(never)}")


if __name__ == "__main__":
    main()
