# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Templates for random placed programs (placed_ops.py): attention that keeps its logsumexp, and its backward."""
from placed_ops import attention_segments, first_query, template
from placed_programs import Factor, Spec


class Setting:
    def __init__(self, p):
        self.p = p
        self.b, self.q = p.dim([1, 2, 3]), p.dim([3, 4, 5])
        self.h, self.k, self.e, self.f = (p.rng.choice(s) for s in ([2, 3, 4, 6], [4, 5], [2, 4], [2, 3]))
        self.group = 2 if p.rng.random() < 0.4 and self.h % 2 == 0 else 1
        self.causal = p.rng.random() < 0.5
        self.sums = "f64" if p.float == "f64" else "f32"
        self.heads = ["h", "g"] if self.group > 1 else ["h"]

    def factors(self, **kinds):
        # Two axes leave some ranks no head at all.
        kinds.setdefault("g", "parallel" if len(self.p.mesh.axes) == 1 else "whole")
        sizes = {"b": self.b, "h": self.h // self.group, "q": self.q, "k": self.k, "e": self.e, "f": self.f}
        self.all = {n: Factor(size, kinds.get(n, "parallel")) for n, size in sizes.items()}
        self.all["g"] = Factor(self.group, kinds["g"], plain=True)
        return self.all

    def dims(self, names):
        return [[n for n in part if self.all[n].size > 1] for part in names]

    def tensor(self, heads, *last):
        """Shape and dims of [b, heads, last ...]."""
        sizes = {"b": self.b, "q": self.q, "k": self.k, "e": self.e, "f": self.f}
        whole = heads == self.heads
        shape = [self.b, self.h if whole else self.h // self.group] + [sizes[n] for n in last]
        return shape, self.dims([["b"], heads, *([n] for n in last)])

    def operand(self, heads, *last, dtype=None):
        shape, dims = self.tensor(heads, *last)
        return self.p.arg(shape, dtype), dims

    def mask(self):
        if self.causal or self.p.rng.random() < 0.5:
            return []
        if self.p.rng.random() < 0.5:
            return [self.operand(self.heads, "q", "k")]
        return [(self.p.arg([self.b, 1, self.q, self.k]), self.dims([["b"], [], ["q"], ["k"]]))]

    def attributes(self, operands, count):
        words = (["is_causal", first_query(self.p)] if self.causal else []) + (["enable_gqa"] if self.group > 1 else [])
        return ", ".join(words + ["scale = 0.25 : f64", attention_segments(operands, count)])


@template
def flash_attention(p):
    s = Setting(p)
    factors = s.factors(k="whole", e="whole", f="whole")
    operands = [s.operand(s.heads, "q", "e"), s.operand(["h"], "k", "e"), s.operand(["h"], "k", "f")] + s.mask()
    (out, out_dims), (sums, sums_dims) = s.tensor(s.heads, "q", "f"), s.tensor(s.heads, "q")
    return Spec("scaled_dot_product_flash_attention", operands, [(out, p.float, out_dims), (sums, s.sums, sums_dims)],
                factors, s.attributes(operands, 3))


@template
def flash_attention_backward(p):
    s = Setting(p)
    factors = s.factors(q="whole", k="whole", e="whole", f="whole", g="whole")
    query, key, value = (s.heads, "q", "e"), (["h"], "k", "e"), (["h"], "k", "f")
    operands = [s.operand(s.heads, "q", "f"), s.operand(*query), s.operand(*key), s.operand(*value),
                s.operand(s.heads, "q", "f"), s.operand(s.heads, "q", dtype=s.sums)] + s.mask()
    results = [(shape, p.float, dims) for shape, dims in (s.tensor(*query), s.tensor(*key), s.tensor(*value))]
    return Spec("scaled_dot_product_flash_attention_backward", operands, results, factors, s.attributes(operands, 6), linear=[{0}])
