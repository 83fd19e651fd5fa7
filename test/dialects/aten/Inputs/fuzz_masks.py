# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs of the kind that attention masks are made of. PyTorch computes each op as it is chosen;
--aten-fold-masks must leave a program with the same results (run by test/reference)."""

import pathlib
import random
import sys

import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "reference"))
import interpreter
import program
from mlir_text import mlir_type, shard_opt

COMPARE = ["le", "lt", "ge", "gt", "eq", "ne"]


class Program:
    def __init__(self):
        self.lines, self.values = [], []

    def add(self, text, operands, result):
        types = ", ".join(mlir_type(v.shape, v.dtype) for _, v in operands)
        form = f"({types}) -> " if operands else ""
        name = f"%v{len(self.values)}"
        self.lines.append(f"  {name} = {text.format(*(n for n, _ in operands))} : "
                          f"{form}{mlir_type(result.shape, result.dtype)}")
        self.values.append((name, result))
        return name, result

    def pick(self, dtype, rank=None):
        found = [v for v in self.values if v[1].dtype == dtype and (rank is None or v[1].dim() >= rank)]
        return random.choice(found) if found else None

    def partner(self, value):
        """A value of the same type that broadcasts with `value`, to something not too large."""
        def fits(other):
            try:
                return torch.broadcast_shapes(value.shape, other.shape).numel() <= 4096
            except RuntimeError:
                return False
        return random.choice([v for v in self.values if v[1].dtype == value.dtype and fits(v[1])])

    def constant(self, dtype):
        n = random.randint(-2, 3)
        value = torch.tensor(n % 2 == 0 if dtype == torch.bool else n, dtype=dtype)
        text = ("true" if value else "false") if dtype == torch.bool else str(n)
        self.lines.append(f"  %v{len(self.values)} = aten.constant dense<{text}> : {mlir_type([], dtype)}")
        self.values.append((f"%v{len(self.values)}", value))


def arange(p):
    n, start, step = random.randint(1, 6), random.choice([0, 0, 0, 1, -1]), random.choice([1, 1, 2, -1])
    end = start + n * step
    p.add(f"aten.arange [{start} : {end} : {step}] i64", [], torch.arange(start, end, step))


def arithmetic(p):
    a = p.pick(torch.int64)
    b = p.partner(a[1])
    name = random.choice(["add", "sub", "sub", "mul"])
    p.add(f"aten.{name} {{0}}, {{1}}", [a, b], getattr(torch, name)(a[1], b[1]))


def compare(p):
    a = p.pick(torch.int64)
    b = p.partner(a[1])
    name = random.choice(COMPARE)
    p.add(f"aten.{name} {{0}}, {{1}}", [a, b], getattr(torch, name)(a[1], b[1]))


def logic(p):
    a = p.pick(torch.bool)
    b = p.partner(a[1])
    name = random.choice(["bitwise_and", "bitwise_and", "logical_and", "bitwise_or"])
    if random.random() < 0.2:
        p.add("aten.logical_not {0}", [a], ~a[1])
    else:
        p.add(f"aten.{name} {{0}}, {{1}}", [a, b], getattr(torch, name)(a[1], b[1]))


def rearrange(p):
    a = name, x = p.pick(random.choice([torch.int64, torch.bool]))
    d = random.randint(0, x.dim())
    if x.dim() < 4 and random.random() < 0.5:
        return p.add(f"aten.unsqueeze {{0}} dim {d}", [a], x.unsqueeze(d))
    if x.dim() == 0:
        return None
    d = random.randrange(x.dim())
    e = random.randrange(x.dim())
    choice = random.randrange(5)
    if choice == 0:
        return p.add(f"aten.transpose {{0}} [{d}, {e}]", [a], x.transpose(d, e))
    if choice == 1 and x.numel() < 500:
        shape = [random.choice([1, 2, 5]) if n == 1 else n for n in x.shape]
        return p.add(f"aten.expand {{0}} {shape}", [a], x.expand(shape))
    if choice == 2:
        start, end = sorted((random.randint(-2, x.shape[d]), random.randint(0, x.shape[d])))
        step = random.choice([1, 1, 2])
        return p.add(f"aten.slice {{0}} dim {d} [{start} : {end} : {step}]", [a],
                     torch.ops.aten.slice(x, d, start, end, step))
    if choice == 3 and x.shape[d]:
        at = random.randint(-x.shape[d], x.shape[d] - 1)
        return p.add(f"aten.select {{0}} dim {d} at {at}", [a], x.select(d, at))
    return p.add(f"aten.view {{0}} {[1] + list(x.shape)}", [a], x.view([1] + list(x.shape)))


def join(p):
    a = p.pick(torch.int64, rank=1)
    if a is None:
        return
    d = random.randrange(a[1].dim())
    s, n = list(a[1].shape), random.randint(0, a[1].shape[d])
    first = p.add(f"aten.slice {{0}} dim {d} [0 : {n} : 1]", [a], a[1].narrow(d, 0, n))
    rest = p.add(f"aten.slice {{0}} dim {d} [{n} : {s[d]} : 1]", [a], a[1].narrow(d, n, s[d] - n))
    other = rest if random.random() < 0.7 else a
    p.add(f"aten.cat {{0}}, {{1}} dim {d}", [first, other], torch.cat([first[1], other[1]], d))


def scan(p):
    a = p.pick(random.choice([torch.bool, torch.int64]), rank=1)
    if a is not None:
        d = random.randrange(a[1].dim())
        p.add(f"aten.cumsum {{0}} dim {d}", [a], a[1].cumsum(d))


def cast(p):
    a = p.pick(random.choice([torch.bool, torch.int64]))
    if a[1].dtype == torch.bool:
        p.add("aten.to_copy {0} to i64", [a], a[1].long())
    else:
        p.add("aten.to_copy {0} to i1", [a], a[1].bool())


def index(p):
    a = p.pick(random.choice([torch.bool, torch.int64]), rank=1)
    if a is None:
        return
    at, indices = [], []
    for d, n in enumerate(a[1].shape):
        inside = [v for v in p.values if v[1].dtype == torch.int64 and v[1].numel() and
                  v[1].min() >= -n and v[1].max() < n]
        if inside and random.random() < 0.7:
            at.append(d)
            indices.append(random.choice(inside))
    if not at:
        return
    slots = [f"{{{at.index(e) + 1}}}" if e in at else ":" for e in range(at[-1] + 1)]
    it = iter(indices)
    try:
        result = torch.ops.aten.index(a[1], [next(it)[1] if d in at else None for d in range(a[1].dim())])
    except (RuntimeError, IndexError):
        return
    if result.numel() <= 4096 and result.dim() <= 5:
        p.add(f"aten.index {{0}}[{', '.join(slots)}]", [a] + indices, result)


STEPS = [arange, arithmetic, arithmetic, compare, compare, logic, logic, logic, rearrange, rearrange,
         rearrange, rearrange, join, scan, cast, index, index, index]


def attention(p, inputs):
    """An attention whose mask is one of the values, and its inputs."""
    masks = [v for v in p.values if v[1].dtype == torch.bool and 2 <= v[1].dim() <= 4 and v[1].numel()]
    if not masks:
        return
    mask = random.choice(masks)
    s = [1] * (4 - mask[1].dim()) + list(mask[1].shape)
    q, k = torch.randn(s[0], s[1], s[2], 8), torch.randn(s[0], s[1], s[3], 8)
    args = []
    for x in (q, k):
        args.append((f"%a{len(inputs)}", x))
        inputs.append(x)
    p.add("aten.scaled_dot_product_attention {0}, {1}, {1} mask({2})".replace("{2}", mask[0]),
          [args[0], args[1], args[1], mask],
          torch.nn.functional.scaled_dot_product_attention(q, k, k, mask[1]))


def generate():
    p, inputs = Program(), [torch.randint(0, 2, (2, 5))]
    p.values.append(("%a0", inputs[0]))
    p.constant(torch.int64)
    p.constant(torch.bool)
    arange(p)
    for _ in range(random.randint(5, 40)):
        if random.random() < 0.15:
            p.constant(random.choice([torch.int64, torch.bool]))
        else:
            random.choice(STEPS)(p)
    attention(p, inputs)
    results = p.values[1:]
    args = ", ".join(f"%a{i}: {mlir_type(x.shape, x.dtype)}" for i, x in enumerate(inputs))
    types = ", ".join(mlir_type(v.shape, v.dtype) for _, v in results)
    text = (f"func.func @f({args}) -> ({types}) {{\n" + "\n".join(p.lines) +
            f"\n  return {', '.join(n for n, _ in results)} : {types}\n}}\n")
    return text, inputs, [v for _, v in results]


def main(count, seed):
    random.seed(seed)
    torch.manual_seed(seed)
    cases = [generate() for _ in range(count)]
    module = "".join(text.replace("@f(", f"@f{i}(") for i, (text, _, _) in enumerate(cases))
    done = shard_opt(module, "--aten-fold-masks", "--test-print-program-json", "-o", "/dev/null")
    if done.returncode:
        print(done.stderr[:4000])
        return 1
    functions = program.parse(done.stdout)
    bad = folded = 0
    for i, (text, inputs, expected) in enumerate(cases):
        function = functions[f"f{i}"]
        folded += text.count(" = aten.") - text.count("aten.constant") - sum(
            op.name != "aten.constant" for op in function.ops[:-1])
        for j, (x, y) in enumerate(zip(interpreter.run_global(function, inputs), expected)):
            if x.shape != y.shape or not torch.allclose(x.double(), y.double(), equal_nan=True, atol=1e-5):
                bad += 1
                print(f"result {j} of\n{text}")
                break
    print(f"{count} programs agree, {folded} ops folded" if not bad else f"{bad} failures")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
