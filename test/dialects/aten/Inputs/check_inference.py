# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares inferred types with PyTorch's own on random ops (pytorch_cases.py).

Each case is written three times: with results of unknown sizes, which --aten-refine-types must turn into
PyTorch's; with operands of partly unknown sizes and PyTorch's results, which must verify; and, where
PyTorch raises an error, with a result of any type: inference must refuse it. With the reference page of the
dialect (generated from the ops' definitions) as the last argument, every op must be among the cases.
"""

import random
import re
import sys

import torch

from families import FAMILIES
from mlir_text import function, mlir_type, shard_opt


# Ops that no call in PyTorch answers for, and what looks at them instead.
NOT_COMPARED = {
    "constant": "has the type of its value",
    "custom": "has the types that its creator gives it; test/e2e/test_custom_ops.py compares what its functions compute",
    "opaque": "has the types that its creator gives it",
    "sym_size": "gives an index, no tensor; tests of the importer look at it",
}


def ops_of(page):
    ops = set(re.findall(r"^### `aten\.(\w+)`", open(page).read(), re.M))
    assert len(ops) > 100, f"{page} lists {len(ops)} ops"
    return ops


def op_name(text):
    return re.match(r"aten\.(\w+)", text)[1]


def uncovered(ops, calls):
    """Ops of the dialect that no accepted case is about, and exceptions that are none."""
    seen = {op_name(text) for text, _ in calls.values()}
    return sorted(ops - seen - set(NOT_COMPARED)) + sorted(set(NOT_COMPARED) - (ops - seen))


def forget(shape, chance):
    return ["?" if random.random() < chance else n for n in shape]


def main(count, seed, page=None):
    random.seed(seed)
    expected, refine, forgetful, refused, calls = {}, [], [], [], {}
    ops = ops_of(page) if page else set()
    missing = ops - set(NOT_COMPARED)
    # A little longer for ops that chance has left out.
    for i in range(count + count // 4):
        if i >= count and not missing:
            break
        operands, text, call = random.choice(FAMILIES)()[:3]
        if i >= count and op_name(text) not in missing:
            continue
        types = [mlir_type(*o) for o in operands]
        try:
            out = call(*(torch.empty(s, dtype=t, device="meta") for s, t in operands))
        except Exception:
            refused.append((text, function(f"c{i}", types, text, ["tensor<f32>"])))
            continue
        out = list(out) if isinstance(out, (list, tuple)) else [out]
        calls[f"c{i}"] = (text, types)
        missing.discard(op_name(text))
        expected[f"c{i}"] = [mlir_type(r.shape, r.dtype) for r in out]
        refine.append(function(f"c{i}", types, text,
                               [mlir_type(forget(r.shape, 1), r.dtype) for r in out]))
        forgetful.append(function(f"c{i}", [mlir_type(forget(s, 0.4), t) for s, t in operands], text,
                                  expected[f"c{i}"]))

    bad = 0
    done = shard_opt("".join(refine), "--aten-refine-types")
    found = dict(re.findall(r"func\.func @(c\d+)\(.*\) -> (.*) \{", done.stdout))
    if done.returncode:
        bad += 1
        print(done.stderr[:4000])
    else:
        for name, types in expected.items():
            if found.get(name, "").strip("()") != ", ".join(types):
                bad += 1
                print(f"{calls[name]}: PyTorch says {types}, inferred {found.get(name)}")
    done = shard_opt("".join(forgetful))
    if done.returncode:
        bad += 1
        print(done.stderr[:4000])
    done = shard_opt("// -----\n".join(f for _, f in refused), "--split-input-file")
    messages = done.stderr.count("failed to infer returned types")
    if messages != len(refused):
        bad += 1
        accepted = done.stdout.count("func.func")
        print(f"PyTorch refuses {len(refused)} cases, inference {messages} ({accepted} accepted)")
        for text, f in refused:
            if "failed to infer" not in shard_opt(f).stderr:
                print(f)
    if page and (missing := uncovered(ops, calls)):
        bad += 1
        print(f"no case of aten.{', aten.'.join(missing)}")
    print(f"{len(expected)} calls agree, {len(refused)} are refused" if not bad else f"{bad} failures")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
