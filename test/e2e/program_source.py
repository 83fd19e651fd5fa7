# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs as a person would write them in PyTorch: lines of Python over tensors, run as they are made, so that
every line fits the shapes that it meets. Nothing here is made from the list of ops that the compiler has; ops
that it was found to refuse are left out, since a program with one of them says nothing about the others."""
import dataclasses
import random

import torch
import torch.nn.functional as F  # noqa: F401 (the lines use it)

FLOAT, INT, BOOL = torch.float32, torch.int64, torch.bool
EXTENTS = [1, 1, 2, 2, 3, 3, 4, 5, 5, 6, 7, 8, 9, 12, 13]
LARGEST = 50.0  # of a float, so that rounding errors stay comparable
MOST_ELEMENTS = 20000


def pick_shape(low=0, high=4):
    rank = random.choice([r for r in (0, 1, 1, 2, 2, 2, 3, 3, 3, 4) if low <= r <= high])
    return [random.choice(EXTENTS) for _ in range(rank)]


@dataclasses.dataclass
class Line:
    """`names` are assigned what `text` says; `inputs` are the variables in it."""
    names: list
    text: str
    inputs: list


@dataclasses.dataclass
class Source:
    """A program. `inputs` and `weights` are shapes and types by name."""
    inputs: dict
    weights: dict
    lines: list
    returned: list

    def body(self, indent="        "):
        lines = [f"{', '.join(line.names)} = {line.text}" for line in self.lines]
        return "\n".join(indent + text for text in [*lines, f"return ({', '.join(self.returned)},)"])

    def text(self):
        takes = ", ".join(["self", *self.inputs])
        return f"    def forward({takes}):\n{self.body()}\n"


def tensor(shape, dtype, generator):
    """Inputs and weights: the same for the same generator."""
    if dtype == BOOL:
        return torch.rand(shape, generator=generator) < 0.5
    if dtype == INT:
        return torch.randint(0, 5, shape, generator=generator)
    return torch.randn(shape, generator=generator)


def evaluate(text, variables):
    return eval(text, {"torch": torch, "F": F, "changed": changed, "ordered": ordered, **variables})  # noqa: S307 (our own lines)


def results_of(result):
    return [result] if isinstance(result, torch.Tensor) else list(result)


def changed(tensor, *steps):
    """A copy `t`, and what each step makes of the value before, `v`: a view, or the same after a write. Lines call it."""
    copy = value = tensor.clone()
    return [copy, *(value := step(value, copy) for step in steps)]


def ordered(tensor, key, descending, way, *steps):
    """Rows of a tensor in the order of their keys, what the steps make of them, and that in the order that the rows had. Lines call it."""
    order = key.argsort(dim=0, descending=descending, stable=True)
    back = (order.argsort(), torch.zeros_like(order).scatter(0, order, torch.arange(len(order))),
            torch.empty_like(order).index_copy(0, order, torch.arange(len(order))))[way]
    rows = tensor[order] if way else tensor.index_select(0, order)
    made = [rows := step(rows, order) for step in steps]
    return [rows[back], *made[:way]]


class Writer:
    """Writes lines, and keeps their values."""

    def __init__(self, seed):
        random.seed(seed)
        self.values, self.lines, self.count = {}, [], 0
        self.generator = torch.Generator().manual_seed(seed)
        self.inputs, self.weights = {}, {}
        for i in range(random.randint(1, 3)):
            dtype = random.choice([FLOAT, FLOAT, FLOAT, FLOAT, INT, BOOL])
            self.declare(self.inputs, f"x{i}", pick_shape(1 if i == 0 else 0), dtype)

    def declare(self, where, name, shape, dtype):
        where[name] = (list(shape), dtype)
        self.values[name] = tensor(shape, dtype, self.generator)

    def weight(self, shape):
        name = f"w{len(self.weights)}"
        self.declare(self.weights, name, shape, FLOAT)
        return f"self.{name}"

    def pick(self, *dtypes, low=0, high=9):
        """A variable; later ones more often, so that there are chains."""
        names = [n for n, v in self.values.items() if n[0] != "w" and (not dtypes or v.dtype in dtypes)
                 and low <= v.dim() <= high]
        if not names:
            raise IndexError("no such value")
        return names[max(random.randrange(len(names)) for _ in range(2))]

    def shape(self, name):
        return list(self.values[name].shape)

    def write(self, text, count=1):
        """Keeps the line if PyTorch can run it and its values are tame."""
        variables = {**self.values, "self": self}
        for name in self.weights:
            setattr(self, name, self.values[name])
        result = evaluate(text, variables)
        results = results_of(result)
        for value in results:
            if not isinstance(value, torch.Tensor) or value.numel() > MOST_ELEMENTS or value.dim() > 6:
                raise ValueError("too large")
            if value.dtype.is_floating_point and value.numel() and not bool((value.abs() <= LARGEST).all()):
                raise ValueError("numbers too large")
            if value.dtype == INT and value.numel() and int(value.abs().max()) > 10000:
                raise ValueError("numbers too large")
        names = [f"v{self.count + i}" for i in range(len(results))]
        self.count += len(results)
        used = [n for n in self.values if n[0] != "w" and n in words(text)]
        self.lines.append(Line(names if len(names) > 1 or isinstance(result, torch.Tensor) else [f"{names[0]},"], text, used))
        for name, value in zip(names, results):
            self.values[name] = value.clone()
        return names


def words(text):
    """Identifiers in a line."""
    return set("".join(c if c.isalnum() or c == "_" else " " for c in text).split())


# Each of the following writes a line or a few in some manner of writing. What does not fit raises, and is not written.

def arithmetic(w):
    a = w.pick(FLOAT, INT)
    b = w.pick(w.values[a].dtype)
    k = random.choice(["2", "3", "1", "0", "-1"]) if w.values[a].dtype == INT else random.choice(["0.5", "2.0", "1.0", "0.25", "3"])
    w.write(random.choice([f"{a} + {b}", f"{a} - {b}", f"{a} * {b}", f"{a} * {k}", f"{a} + {k}", f"{k} - {a}", f"-{a}",
                           f"({a} + {b}) * {k}", f"{a} * {a} - {b}", f"{a} / ({b}.abs() + 1)", f"{a} ** 2",
                           f"torch.maximum({a}, {b})", f"torch.minimum({a}, {b} + 1)", f"{a}.clamp(-1, 2)",
                           f"torch.lerp({a}, {b}, 0.3)", f"torch.addcmul({a}, {b}, {b})"]))


def integers(w):
    a = w.pick(INT)
    w.write(random.choice([f"{a} // 2", f"{a} % 3", f"{a} & 3", f"{a} | 4", f"({a} ^ 1)", f"{a}.float() * 0.5", f"{a} * 2 + 1",
                           f"{a} == {a}.max()", f"F.one_hot({a} % 4, 4)", f"{a}.sum(-1)", f"{a}.cumsum(0)", f"{a}.bool()", f"{a}.abs().sqrt()"]))


def comparison(w):
    a = w.pick(FLOAT, INT)
    b = w.pick(w.values[a].dtype)
    m = w.write(random.choice([f"{a} > 0", f"{a} <= {b}", f"({a} > 0.5) & ({b} < 1)", f"~({a} < 0)", f"{a} != {b}",
                               f"torch.isclose({a}, {b})" if w.values[a].dtype == FLOAT else f"{a} == {b}"]))[0]
    w.write(random.choice([f"torch.where({m}, {a}, {b})", f"{a}.masked_fill({m}, 0)", f"{m}.float()", f"{m}.sum(0)",
                           f"{m}.any(-1)", f"{m}.all()", f"torch.where({m}, {a}, 0.5)", f"{a} * {m}"]))


def function(w):
    a = w.pick(FLOAT)
    w.write(random.choice([f"torch.tanh({a})", f"{a}.sigmoid()", f"torch.exp(-{a}.abs())", f"torch.log1p({a}.abs())",
                           f"{a}.relu()", f"F.gelu({a})", f"F.silu({a})", f"{a}.sin() * {a}.cos()", f"torch.sqrt({a}.abs() + 0.1)",
                           f"F.softplus({a})", f"F.leaky_relu({a}, 0.1)", f"torch.erf({a})", f"({a}.abs() + 1).rsqrt()",
                           f"F.hardswish({a})", f"F.elu({a})", f"torch.atan({a})", f"{a}.square()", f"{a}.sign()", f"{a}.floor()",
                           f"F.gelu({a}, approximate='tanh')", f"({a}.abs() + 0.5).log()", f"{a}.reciprocal().clamp(-1, 1)"]))


def reduction(w):
    a = w.pick(FLOAT, low=1)
    d, keep = random.randrange(-1, len(w.shape(a))), random.choice(["", ", keepdim=True"])
    w.write(random.choice([f"{a}.sum({d}{keep}) * 0.1", f"{a}.mean({d}{keep})", f"{a}.amax({d}{keep})", f"{a}.amin({d}{keep})",
                           f"{a}.mean()", f"{a}.sum() / 10", f"{a}.std({d}{keep}, correction=0)", f"{a}.logsumexp({d}{keep})",
                           f"{a}.norm(dim={d}{keep})", f"{a}.var({d}, correction=0)", f"{a}.max({d}{keep}).values",
                           f"{a}.argmax({d})", f"{a}.cumsum({d}) * 0.2", f"{a}.softmax({d})", f"{a}.log_softmax({d})",
                           f"{a} - {a}.mean({d}, keepdim=True)", f"{a}.max({d})", f"{a}.min({d}{keep})", f"{a}.abs().max()",
                           f"F.normalize({a}, dim={d})", f"{a}.prod({d}).tanh()", f"{a}.flatten().sum() * 0.01",
                           f"{a}.argmin({d}{keep})", f"(({a} > 0) & ({a} < 1)).sum({d})"]))


def norm(w):
    a = w.pick(FLOAT, low=1)
    n = w.shape(a)[-1]
    if random.random() < 0.5:
        scale, shift = w.weight([n]), w.weight([n])
        w.write(f"F.layer_norm({a}, ({n},), {scale}, {shift}, 1e-3)")
    else:
        w.write(f"{a} * ({a}.pow(2).mean(-1, keepdim=True) + 1e-3).rsqrt() * {w.weight([n])}")


def product(w):
    a = w.pick(FLOAT, low=1)
    n, m = w.shape(a)[-1], random.choice(EXTENTS)
    kind = random.randrange(6)
    if kind == 0:
        w.write(f"F.linear({a}, {w.weight([m, n])}, {w.weight([m])}) * 0.3")
    elif kind == 1:
        w.write(f"{a} @ {w.weight([n, m])} * 0.3")
    elif kind == 2:
        w.write(f"{a} @ {a}.transpose(-1, -2) * 0.2")
    elif kind == 3:
        w.write(f"torch.einsum('...i,ij->...j', {a}, {w.weight([n, m])}) * 0.3")
    elif kind == 4:
        w.write(f"torch.matmul({a}.unsqueeze(-2), {w.weight([n, m])}).squeeze(-2) * 0.3")
    else:
        w.write(f"torch.outer({a}.flatten()[:7], {w.weight([m])})")


def view(w):
    a = w.pick(low=1)
    s = w.shape(a)
    d, e = random.randrange(len(s)), random.randrange(len(s))
    order = random.sample(range(len(s)), len(s))
    w.write(random.choice([f"{a}.reshape(-1)", f"{a}.flatten({min(d, e)}, {max(d, e)})", f"{a}.transpose({d}, {e})",
                           f"{a}.permute({order})", f"{a}.unsqueeze({d})", f"{a}.squeeze({d})", f"{a}[None]", f"{a}[..., None]",
                           f"{a}.reshape({s[::-1]})", f"{a}.T" if len(s) == 2 else f"{a}.mT", f"{a}.movedim({d}, {e})",
                           f"{a}.expand(3, {', '.join(['-1'] * len(s))})", f"{a}.reshape({s[0]}, -1)", f"{a}.unflatten({d}, (1, -1))",
                           f"{a}.reshape(-1, {s[-1]})", f"{a}.swapaxes({d}, {e}).contiguous()"]))


def part(w):
    a = w.pick(low=1)
    s = w.shape(a)
    d = random.randrange(len(s))
    i, n = random.randrange(s[d]), s[d]
    first = random.randint(0, n)
    w.write(random.choice([f"{a}[{i % s[0]}]", f"{a}.narrow({d}, {i}, {n - i})", f"{a}[..., ::2]", f"{a}.select({d}, {i})",
                           f"{a}.chunk(2, {d})", f"{a}.split([{first}, {n - first}], {d})", f"{a}[:-1]", f"{a}[1:]", f"{a}.flip({d})",
                           f"{a}.unbind({d})[:3]", f"{a}.roll(1, {d})", f"{a}[..., :{max(1, n // 2)}]", f"{a}.tensor_split(3, {d})",
                           f"{a}.index_select({d}, torch.tensor([0, {i}, 0]))", f"{a}[[{i % s[0]}, 0]]", f"{a}.split(2, {d})[0]",
                           f"{a}[..., -1:]", f"{a}[0:0]"]))


def joined(w):
    a = w.pick(low=1)
    d = random.randrange(len(w.shape(a)))
    b = random.choice([n for n, v in w.values.items() if v.dtype == w.values[a].dtype and n[0] != "w"
                       and v.dim() == w.values[a].dim()
                       and all(p == q for i, (p, q) in enumerate(zip(v.shape, w.shape(a))) if i != d)])
    same = random.choice([n for n, v in w.values.items() if v.shape == w.values[a].shape and v.dtype == w.values[a].dtype
                          and n[0] != "w"])
    w.write(random.choice([f"torch.cat([{a}, {b}], {d})", f"torch.cat([{b}, {a}, {b}], {d})", f"torch.stack([{a}, {same}], {d})",
                           f"{a}.repeat_interleave(2, {d})", f"torch.stack([{a}, {a}]).sum(0)", f"torch.cat([{a}], {d})",
                           f"{a}.repeat({', '.join('2' if i == d else '1' for i in range(len(w.shape(a))))})",
                           f"F.pad({a}, (1, 2))", f"F.pad({a}, (0, 1), value=0.5)", f"torch.hstack([{a}, {b}])",
                           f"torch.tile({a}, (2, 1))"]))


def lookup(w):
    i = w.pick(INT)
    a = w.pick(FLOAT, low=1)
    n = w.shape(a)[0]
    table = w.weight([5, random.choice(EXTENTS)])
    w.write(random.choice([f"F.embedding({i} % 5, {table})", f"{a}[{i}.flatten() % {n}]", f"{table}[{i}.clamp(0, 4)]",
                           f"torch.take_along_dim({a}, {a}.argmax(0, keepdim=True), 0)", f"{a}.gather(0, ({a} > 0).long() % {n})",
                           f"{a}.gather(-1, {a}.argmax(-1, keepdim=True))"]))


def made(w):
    """Tensors out of nothing."""
    a = w.pick(low=1)
    n = w.shape(a)[-1]
    b = w.pick(FLOAT, low=1)
    w.write(random.choice([f"torch.arange({n})", f"torch.arange({n}) + 0", f"torch.zeros({n}, 3)", f"torch.ones_like({a})",
                           f"torch.full({w.shape(a)}, 2)", f"torch.eye({n})", f"torch.tensor([0.5, 1.5])", f"torch.linspace(0, 1, {n})",
                           f"{b} + torch.arange({w.shape(b)[-1]})", f"{b} * torch.ones({w.shape(b)[-1]})", f"{a}.new_zeros({n})",
                           f"torch.arange(1, {n + 1}).float().reciprocal()", f"torch.zeros_like({a})", f"torch.tensor(3)",
                           f"torch.ones({n}, {n}).tril()", f"torch.arange({n})[:, None] >= torch.arange({n})"]))


def triangle(w):
    a = w.pick(FLOAT, low=2)
    w.write(random.choice([f"{a}.tril()", f"{a}.triu(1)", f"{a}.tril(-1) + {a}.triu(0)", f"{a} * torch.ones_like({a}).tril()"]))


def attention(w):
    a = w.pick(FLOAT, low=3, high=4)
    mask = random.choice(["", ", is_causal=True", f", attn_mask=torch.ones({w.shape(a)[-2]}, {w.shape(a)[-2]}).tril().bool()",
                          ", scale=1.0"])
    if random.random() < 0.6:
        w.write(f"F.scaled_dot_product_attention({a}, {a}.tanh(), {a}{mask})")
    else:
        w.write(f"({a} @ {a}.transpose(-1, -2) * 1.0).softmax(-1) @ {a}")


def same(w):
    """Another name for a value, or arithmetic that changes nothing."""
    a = w.pick()
    number = w.values[a].dtype != BOOL
    s = w.shape(a)
    lines = [f"{a}.clone()", f"{a}.contiguous()", f"{a}.view({s})", f"{a}.to({w.values[a].dtype})", f"{a}[...]", f"{a}.detach()",
             f"{a}.reshape({s})", f"{a}.expand({s})" if s else f"{a}.clone()", f"torch.where({a} == {a}, {a}, {a})"]
    if number:
        lines += [f"{a} * 1", f"{a} + 0", f"{a} - 0", f"torch.maximum({a}, {a})", f"torch.minimum({a}, {a})", f"--{a}", f"{a} + {a} - {a}"]
    if len(s) > 1:
        lines += [f"{a}.transpose(0, 1).transpose(0, 1)", f"{a}.flatten().view({s})"]
    if s:
        lines += [f"{a}[:]", f"{a}.flip(0).flip(0)", f"torch.cat([{a}])", f"torch.cat([{a}, {a}[0:0]])"]
    w.write(random.choice(lines))


def again(w):
    """A line that is there already, with new names."""
    line = random.choice(w.lines)
    w.write(line.text)


def chain(w):
    a = w.pick(FLOAT)
    step = random.choice(["torch.tanh({} + 0.1)", "({} * 0.9).relu() + 0.05", "{}.sin()", "({} * 1.0 + 0.0)", "{} - {}.mean()"])
    for _ in range(random.randint(3, 8)):
        a = w.write(step.replace("{}", a))[0]


def updated(w):
    """A copy that is changed in place, as one line: a function does it."""
    a = w.pick(FLOAT, low=1)
    n = w.shape(a)[0]
    w.write(random.choice([f"{a}.clone().mul_(0.5).add_(1)", f"{a}.clone().clamp_(0, 1)", f"{a}.clone().fill_(0.25)",
                           f"torch.slice_scatter({a}, {a}[:{n - n // 2}] * 2, 0, {n // 2})",
                           f"torch.select_scatter({a}, {a}[0] * 0, 0, {n - 1})", f"{a}.clone().zero_()"]))


MANNERS = ([arithmetic] * 5 + [function] * 4 + [reduction] * 4 + [view] * 4 + [part] * 3 + [same] * 4 + [joined] * 2
           + [product] * 3 + [comparison] * 2 + [made] * 2 + [norm, attention, lookup, integers, triangle, again, chain, updated])


def write_program(seed, manners=MANNERS, most=14):
    """The program of a seed, of at most so many lines (and those of a chain)."""
    w = Writer(seed)
    wanted = random.randint(3, most)
    for _ in range(8 * wanted):
        if len(w.lines) >= wanted:
            break
        state = random.getstate()
        count, weights = len(w.lines), dict(w.weights)
        try:
            random.choice(manners)(w)
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError, ZeroDivisionError):
            random.setstate(state)
            random.random()
            if len(w.lines) == count:  # weights that nothing uses
                for name in set(w.weights) - set(weights):
                    del w.weights[name], w.values[name]
    names = [n for n in w.values if n[0] == "v"]
    returned = [n for n in names if random.random() < 0.35] or names[-1:] or ["x0"]
    if random.random() < 0.3:
        returned.append(random.choice(returned))
    if random.random() < 0.15:
        returned.append(random.choice(list(w.inputs)))
    random.shuffle(returned)
    return Source(w.inputs, w.weights, w.lines, returned)


def rounded(w):
    """Casts, and what has a derivative that is zero or none."""
    a = w.pick(FLOAT)
    w.write(random.choice([f"{a}.double().tanh().float()", f"{a}.detach() * {a}", f"{a} + ({a}.exp() - {a}).detach().tanh()",
                           f"({a} > 0).float()", f"{a}.floor() * {a}", f"{a}.ceil()", f"torch.round({a} * 2)", f"{a}.trunc() + 0.5",
                           f"{a}.sign()", f"torch.div({a}, 0.7, rounding_mode='floor')", f"torch.fmod({a}, 1.5)",
                           f"{a}.masked_fill({a} < 0, 0.1)", f"torch.remainder({a}, 0.7)", f"torch.atan2({a}, {a}.abs() + 1)",
                           f"{a}.long().float() + {a}", f"{random.choice(list(w.inputs))}.bfloat16().float()",
                           f"{a}.double().sum().float() * 0.1", f"F.mish({a})", f"{a} ** 3", f"F.softmin({a}, 0)"]))


DIFFERENTIATED = MANNERS + [rounded] * 4


def with_loss(outputs, kind, weights):
    """The outputs, and a loss of those that are floats."""
    outputs = tuple(outputs)
    floats = [o for o in outputs if o.dtype.is_floating_point]
    terms = {"product": lambda o, c: (o * c).sum(), "square": lambda o, c: ((o - c) ** 2).sum() * 0.5,
             "mean": lambda o, c: (o * c).mean() if o.numel() else o.sum()}
    return (*outputs, sum(terms[kind](o, c) for o, c in zip(floats, weights, strict=True)))
