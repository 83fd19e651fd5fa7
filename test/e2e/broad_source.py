# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rest of what people write, as manners of writing lines of random programs (program_source.py): functions that are rare, volumes and resampling, sorts,
writes through views of a copy, derivatives called by name, numbers of other types. Where PyTorch leaves open what an answer is (an index among equal
numbers, one of several writes to a place, random numbers), a line asks for what is the same in every answer."""
import random

from program_source import BOOL, EXTENTS, FLOAT, INT
from wider_source import WIDER

SHORT = ("torch.int32", "torch.int16", "torch.int8", "torch.uint8")


def like(w, a):
    """Another value of the same shape and type, or itself."""
    return random.choice([n for n, v in w.values.items() if n[0] != "w" and v.shape == w.values[a].shape and v.dtype == w.values[a].dtype])


def rare_function(w):
    a = w.pick(FLOAT)
    w.write(random.choice([f"torch.acos({a}.tanh() * 0.9)", f"torch.asin({a}.tanh() * 0.9)", f"torch.cosh({a}.tanh())", f"torch.sinh({a}.tanh())",
                           f"torch.exp2({a}.tanh())", f"torch.expm1({a}.tanh())", f"torch.erfinv({a}.tanh() * 0.9)", f"F.hardsigmoid({a})", f"F.hardtanh({a}, -0.5, 0.7)",
                           f"torch.log10({a}.abs() + 0.3)", f"torch.log2({a}.abs() + 0.3)", f"torch.tan({a}.tanh())", f"{a}.sgn()", f"F.mish({a})", f"F.relu6({a})",
                           f"F.selu({a})", f"F.celu({a}, 1.5)", f"F.softsign({a})", f"F.logsigmoid({a})", f"F.tanhshrink({a})", f"F.hardshrink({a}, 0.4)",
                           f"F.softshrink({a}, 0.4)", f"F.threshold({a}, 0.1, -1.0)", f"F.softplus({a}, 2.0, 1.0)", f"torch.sinc({a})",
                           f"torch.logit({a}.sigmoid(), 1e-3)", f"torch.asinh({a})", f"torch.acosh({a}.abs() + 1.1)", f"torch.atanh({a}.tanh() * 0.8)",
                           f"torch.deg2rad({a})", f"{a}.frac()", f"torch.clip({a}, max=0.5)", f"{a}.clamp_min(-0.2)", f"{a}.clamp_max(0.3)", f"torch.special.expit({a})",
                           f"torch.xlogy({a}, {a}.abs() + 0.5)", f"torch.rsub({a}, 0.5)", f"torch.rsub({a}, {like(w, a)}, alpha=2)",
                           f"torch.addcdiv({a}, {a}, {a}.abs() + 0.7, value=0.5)", f"torch.special.xlog1py({a}, {a}.abs())", f"torch.positive({a})"]))


def pair(w):
    a = w.pick(FLOAT)
    b = w.pick(FLOAT)
    m = w.pick(FLOAT, BOOL, INT)
    w.write(random.choice([f"torch.atan2({a}, {b}.abs() + 0.6)", f"torch.fmod({a}, {b}.abs() + 0.7)", f"torch.remainder({a}, {b}.abs() + 0.7)",
                           f"({a}.abs() + 0.5) ** {b}.tanh()", f"1.5 ** {a}.tanh()", f"torch.clamp({a}, {b} - 1, {b} + 1)", f"torch.lerp({a}, {b}, {a}.sigmoid())",
                           f"torch.logical_and({a} > 0, {b} > 0)", f"torch.logical_or({m}, {b} > 0.5)", f"torch.logical_xor({m}, {b} < 0)", f"torch.logical_not({m})",
                           f"{a} >= {b}", f"{a} < {b}", f"{a} == {b}", f"{a}.ge(0.25)", f"{a}.le(0.1)", f"{a}.ne(0)", f"{a}.eq(1.0)", f"torch.where({a} > {b}, 1.0, 2.0)",
                           f"torch.where({a} > {b}, {a}, 0.5)", f"torch.where({a} > {b}, 0.5, {a})", f"torch.div({a}, {b}.abs() + 0.7, rounding_mode='trunc')",
                           f"torch.div({a}, {b}.abs() + 0.6, rounding_mode='floor')", f"torch.floor_divide({a}, 0.7)", f"torch.fmax({a}, {b})", f"torch.fmin({a}, {b})",
                           f"torch.hypot({a}, {b})", f"torch.copysign({a}, {b})", f"torch.true_divide({a}, 3)", f"{a}.masked_fill({b} > 0, {a}.sum())", f"{a}.isnan()",
                           f"torch.isinf({a})", f"torch.isfinite({a})", f"torch.logaddexp({a}, {b})", f"torch.heaviside({a}, {b})", f"torch.dist({a}, {b})",
                           f"{a}.type_as({m})", f"{a}.to({m})", f"{m}.to('cpu', torch.float32)", f"torch.broadcast_tensors({a}, {b})", f"{a}.expand_as({b})",
                           f"{a}.reshape_as({b})", f"{a}.view_as({like(w, a)})"]))


def whole_numbers(w):
    """Integers of other widths, which wrap around, and truths."""
    a, kind = w.pick(INT, BOOL, FLOAT), random.choice(SHORT)
    b = f"{a}.to({kind})" if w.values[a].dtype != FLOAT else f"({a}.abs() % 7).to({kind})"
    w.write(random.choice([f"{b}", f"{b} * 3 + 1", f"{b} - {b} // 2", f"{b}.sum()", f"{b} & 5", f"{b} | 2", f"{b} ^ 3", f"~{b}", f"{b} == 2", f"{b}.float() * 0.5",
                           f"{b}.long()", f"torch.maximum({b}, {b} % 2)", f"{b}.clamp(1, 3)", f"{b} + {a}.long()", f"torch.where({b} > 1, {b}, {b} * 0)", f"{b}.bool()",
                           f"torch.count_nonzero({b})", f"{b}.prod()", f"{b}.amax()", f"{b} / 2", f"{b}.sign()", f"torch.cat([{b}, {b}], 0)", f"{b}.flip(0)",
                           f"{b}.double() / 3", f"{b}.any()", f"{b}.all(0)", f"torch.bitwise_not({b})", f"torch.fmod({b}, 3)", f"{b} % 2 == 0", f"{b}.abs()",
                           f"{b}.mean(dtype=torch.float32)"]))


def rare_reduction(w):
    a = w.pick(FLOAT, low=1)
    m = w.pick(FLOAT, BOOL, INT, low=1)
    d, e, keep = random.randrange(len(w.shape(a))), random.randrange(len(w.shape(m))), random.choice(["True", "False"])
    more = [f"{a}.sum((0, 1))", f"{a}.amax((0, -1), {keep})", f"torch.any({m}, (0, -1))", f"torch.all({m}, (0,), {keep})", f"torch.linalg.vector_norm({a}, 3, (0, 1))",
            f"{a}.var((0, 1), unbiased=False)", f"torch.linalg.matrix_norm({a})", f"torch.linalg.norm({a}, dim=(0, 1))", f"{a}.trace()",
            f"{a}.logsumexp((0, 1))"] if min(len(w.shape(a)), len(w.shape(m))) > 1 else []
    w.write(random.choice(more + [f"torch.count_nonzero({m})", f"torch.count_nonzero({m}, {e})", f"{m}.all()", f"{m}.any({e}, {keep})", f"torch.linalg.vector_norm({a})",
                                  f"torch.linalg.vector_norm({a}, 1, {d})", f"torch.linalg.vector_norm({a}, float('inf'), {d})", f"{a}.norm(1)", f"{a}.std()",
                                  f"{a}.var()", f"{a}.std({d}, unbiased=False)", f"{a}.var({d}, False, {keep})", f"torch.var_mean({a})", f"torch.std_mean({a})",
                                  f"torch.var_mean({a}, {d}, unbiased=False)", f"torch.std_mean({a}, {d}, unbiased=False)", f"torch.var({a}, {d}, correction=0)",
                                  f"{a}.prod().tanh()", f"{a}.min()", f"{a}.amin()", f"{m}.max()", f"{m}.long().cumsum({e})", f"{m}.bool().cumsum({e})", f"{a}.argmax()",
                                  f"{a}.argmin()", f"{m}.long().sum({e}, {keep})", f"{a}.nansum({d})", f"torch.logsumexp({a}, {d}, {keep})",
                                  f"{a}.mean({d}, dtype=torch.float64)", f"{m}.sum(dtype=torch.float32)", f"{m}.long().amax({e})", f"{m}.bool().any(0)",
                                  f"F.rms_norm({a}, ({w.shape(a)[-1]},), None, 1e-2)", f"{a}.renorm(2, {d}, 1.0)", f"F.softmax({a}, {d}, dtype=torch.float64)",
                                  f"torch.softmax({m}.float(), {e})"]))


def rare_product(w):
    a = w.pick(FLOAT, low=1, high=3)
    s, n = w.shape(a), random.choice(EXTENTS)
    m = f"{a}.reshape(-1, {s[-1]})"
    w.write(random.choice([f"torch.mv({m}, {w.weight([s[-1]])}) * 0.3", f"torch.dot({a}.flatten(), {a}.flatten().flip(0)) * 0.1",
                           f"torch.mm({m}, {w.weight([s[-1], n])}) * 0.3", f"{m}.mm({m}.t()) * 0.2",
                           f"torch.baddbmm({w.weight([1, n])}, {m}[None], {w.weight([1, s[-1], n])}, beta=0.5, alpha=0.3)",
                           f"torch.addmm({w.weight([n])}, {m}, {w.weight([s[-1], n])}, alpha=0.3)", f"torch.addmv({w.weight([1])}, {m}, {w.weight([s[-1]])}) * 0.3",
                           f"torch.bmm({m}[None], {w.weight([1, s[-1], n])}) * 0.3", f"F.bilinear({m}, {m}, {w.weight([2, s[-1], s[-1]])}) * 0.1",
                           f"torch.tensordot({a}, {w.weight([s[-1], n])}, 1) * 0.3", f"torch.kron({m}[:2], {w.weight([2, 2])})",
                           f"torch.einsum('ai,bi->ab', {m}, {m}) * 0.2", f"torch.einsum('ai,ai->a', {m}, {m}) * 0.2", f"torch.einsum('ai->ia', {m})",
                           f"torch.inner({m}, {w.weight([n, s[-1]])}) * 0.3", f"torch.cross({m}[:, :3], {m}[:, :3].sin(), 1)", f"torch.linalg.vecdot({m}, {m}) * 0.2",
                           f"torch.ger({m}[0], {w.weight([n])})", f"torch.matmul({w.weight([n, m_rows(s)])}, {m}) * 0.2", f"torch.matmul({a}, {w.weight([s[-1]])}) * 0.3",
                           f"torch.chain_matmul({m}, {w.weight([s[-1], 3])}) * 0.3"]))


def m_rows(s):
    rows = 1
    for extent in s[:-1]:
        rows *= extent
    return rows


def images(w, a, d):
    """A value as a batch of `d`-dim images with channels, and the number of channels. Its last dims are the image."""
    s = w.shape(a)
    x = f"{a}[{', '.join(['None'] * max(0, d + 2 - len(s)))}{', ' * (len(s) < d + 2)}...]"
    sizes = [1] * max(0, d + 2 - len(s)) + s
    return x, sizes[1], sizes[2:]


def volume(w):
    """Convolutions, transposed ones and pools of lines, images and volumes."""
    d = random.choice([1, 2, 2, 3])
    a = w.pick(FLOAT, low=2, high=d + 2)
    x, c, sizes = images(w, a, d)
    k, stride, out = random.choice([1, 2, 3]), random.choice([1, 2]), random.choice([1, 2, 3, 4, 6])
    pad, dilation = random.randrange(k), random.choice([1, 1, 2])
    groups = random.choice([g for g in (1, 1, 2, 3, c) if c % g == 0 and out * g < 20])
    kernel = [k] * d
    goal = tuple(random.choice([1, 2, 3]) for _ in range(d)) if d > 1 else random.choice([1, 2, 3])
    kind = random.randrange(3)
    if kind == 0:
        weight, bias = w.weight([out * groups, c // groups, *kernel]), random.choice(["None", w.weight([out * groups])])
        w.write(random.choice([f"F.conv{d}d({x}, {weight}, {bias}, {stride}, {pad}, {dilation}, {groups}) * 0.3",
                               f"F.conv{d}d({x}, {weight}, {bias}, 1, 'same', {dilation}, {groups}) * 0.3",
                               f"F.conv{d}d({x}, {weight}, padding='valid', groups={groups}) * 0.3"]))
    elif kind == 1:
        w.write(f"F.conv_transpose{d}d({x}, {w.weight([c, out, *kernel])}, {random.choice(['None', w.weight([out * groups])])}, {stride}, {pad}, {stride - 1}, {groups}, {dilation}) * 0.3")
    else:
        lines = [f"F.max_pool{d}d({x}, {k}, {stride}, {min(pad, k // 2)}, {dilation})", f"F.max_pool{d}d({x}, {k}, {stride}, ceil_mode=True)",
                 f"F.avg_pool{d}d({x}, {k}, {stride}, {min(pad, k // 2)})", f"F.adaptive_avg_pool{d}d({x}, {goal})", f"F.adaptive_max_pool{d}d({x}, {goal})",
                 f"F.instance_norm({x})", f"F.instance_norm({x}, weight={w.weight([c])}, bias={w.weight([c])})",
                 f"F.batch_norm({x}, None, None, {w.weight([c])}, {w.weight([c])}, True)", f"F.avg_pool{d}d({x}, {k}, {stride}, {min(pad, k // 2)}, True, False)",
                 f"torch.native_group_norm({x}, {w.weight([c])}, {w.weight([c])}, {x}.shape[0], {c}, {m_rows([*sizes, 1])}, {groups}, 1e-3)[0]",
                 f"torch.native_batch_norm({x}, {w.weight([c])}, {w.weight([c])}, {w.weight([c])} * 0.1, {w.weight([c])}.abs() + 0.5, False, 0.1, 1e-3)[0]",
                 f"F.max_pool{d}d({x} + torch.arange({m_rows([*sizes, 1])}).view({sizes}) * 0.01, {k}, return_indices=True)"]
        w.write(random.choice(lines + ([f"F.lp_pool{d}d({x}.abs() + 0.1, 2, {k})"] if d < 3 else [])))


def resampled(w):
    d = random.choice([1, 2, 2, 3])
    a = w.pick(FLOAT, low=1, high=d + 2)
    x, c, sizes = images(w, a, d)
    smooth = ("linear", "bilinear", "trilinear")[d - 1]
    size = tuple(random.randint(1, 7) for _ in range(d))
    factor = random.choice(["2", "1.5", "0.5", str(tuple(random.choice([1.0, 2.0, 1.3]) for _ in range(d)))])
    where = random.choice([f"size={size}", f"scale_factor={factor}"])
    lines = [f"F.interpolate({x}, {where})", f"F.interpolate({x}, {where}, mode='nearest-exact')", f"F.interpolate({x}, {where}, mode='{smooth}')",
             f"F.interpolate({x}, {where}, mode='{smooth}', align_corners=True)", f"F.interpolate({x}, {where}, mode='area')"]
    if d == 2:
        lines += [f"F.interpolate({x}, {where}, mode='bicubic')", f"F.unfold({x}, 2, padding=1)", f"F.unfold({x}, (1, 2), stride=2)",
                  f"F.fold({x}.flatten(1, 2).repeat(1, 4, 1)[..., :1].repeat(1, 1, 6), (3, 4), 2)",
                  f"F.channel_shuffle({x}, {random.choice([g for g in (1, 2, 3, 4) if c % g == 0])})", f"F.pixel_unshuffle(F.interpolate({x}, scale_factor=2), 2)",
                  f"F.pixel_shuffle({x}.repeat(1, 4, 1, 1), 2)"]
    kind, most = random.choice([("reflect", 1), ("replicate", 0), ("circular", 0)])
    pads = [random.randint(0, min(2, sizes[-1 - i // 2] - most)) for i in range(2 * d)]
    w.write(random.choice(lines + [f"F.pad({x}, {pads}, mode='{kind}')"] * 4))


def arranged(w):
    """Other parts and arrangements."""
    a = w.pick(low=1)
    s = w.shape(a)
    d = random.randrange(len(s))
    n, k = s[d], random.randint(1, s[d])
    more = [f"{a}.diagonal()", f"{a}.rot90()", f"torch.tril({a}, 1)", f"torch.triu({a}, -1)", f"{a}.swapdims(0, 1).reshape(-1)", f"torch.vsplit({a}, 1)", f"{a}.fliplr()",
            f"torch.block_diag({a}, {a})" if len(s) == 2 else f"{a}.mT"] if len(s) > 1 else [f"torch.diag({a})", f"torch.diag_embed({a})"]
    w.write(random.choice(more + [f"{a}.unfold({d}, {k}, {random.choice([1, 2, 3])})", f"{a}.squeeze()", f"{a}.squeeze((0, {d}))", f"torch.unsafe_split({a}, {k}, {d})",
                                  f"torch.split_with_sizes({a}, [{k}, {n - k}], {d})[0]", f"torch.select_scatter({a}, {a}.select({d}, 0), {d}, {n - 1})",
                                  f"torch.slice_scatter({a}, {a}.narrow({d}, 0, {(n + 1) // 2}), {d}, 0, {n}, 2)", f"{a}.diff(dim={d})", f"{a}.roll({k}, {d})",
                                  f"{a}.index_select({d}, torch.tensor([{n - 1}, 0]))", f"{a}.t()", f"{a}.flip(({d}, -1))" if d != len(s) - 1 else f"{a}.flip(0)",
                                  f"{a}.repeat(2, {', '.join('1' * len(s))})", f"torch.meshgrid({a}.flatten()[:3], {a}.flatten()[:2], indexing='ij')",
                                  f"torch.as_strided({a}.contiguous(), {s[::-1]}, {strides(s)[::-1]})", f"F.glu({a}.float().repeat_interleave(2, {d}), {d})",
                                  f"torch.atleast_3d({a})", f"{a}.unsafe_chunk(2, {d})", f"{a}.repeat_interleave(2)", f"torch.dstack([{a}, {a}])",
                                  f"torch.column_stack([{a}, {a}])", f"{a}.argwhere().shape[-1] * {a}",
                                  f"{a}.take_along_dim(torch.zeros({[1] * len(s)}, dtype=torch.int64), {d})", f"{a}.movedim(-1, 0)", f"{a}.ravel()[:-1]",
                                  f"torch.cartesian_prod({a}.flatten()[:3], {a}.flatten()[:2])"]))


def strides(s):
    """Of a dense tensor."""
    found = [1]
    for extent in s[:0:-1]:
        found.insert(0, found[0] * extent)
    return found


def out_of_nothing(w):
    """New tensors. Random numbers count for what is not random about them."""
    a = w.pick(FLOAT, low=1)
    s, n = w.shape(a), w.shape(a)[-1]
    w.write(random.choice([f"torch.full_like({a}, 0.5)", f"{a}.new_full(({n}, 2), 3.0)", f"{a}.new_ones({n})", f"torch.zeros({s}) + {a}",
                           f"torch.ones({n}, dtype=torch.int64)", f"torch.tril_indices({n}, 3)", f"torch.triu_indices(3, {n}, 1)", f"torch.full(({n},), True)",
                           f"torch.scalar_tensor(0.5) * {a}", f"torch.empty_like({a}).fill_(0.25)", f"torch.empty({s}).zero_()", f"{a}.new_empty({s}).fill_({a}.mean())",
                           f"torch.fill({a}, 2.0)", f"torch.fill({a}, {a}.max())", f"torch.arange(0, {n}, 2)", f"torch.arange(0.5, {n}, 0.75)",
                           f"torch.arange({n}, 0, -1)", f"torch.logspace(0, 1, {n})", f"torch.rand_like({a}) < 2", f"torch.rand({n}) >= 0",
                           f"torch.randn({s}).isfinite()", f"torch.randn_like({a}) * 0 + 1", f"torch.bernoulli(torch.ones_like({a}))", f"torch.bernoulli({a}, 1.0)",
                           f"torch.randint(2, 3, ({n},))", f"torch.randint(1, ({n},))", f"torch.randint_like({a}, 1)", f"torch.randint_like({a}, 3, 4)",
                           f"torch.normal({a}, torch.zeros_like({a}))", f"torch.normal({a}, 0.0)", f"torch.normal(0.5, torch.zeros_like({a}))",
                           f"torch.normal(0.5, 0.0, ({n},))", f"F.dropout({a}, 0.0)", f"F.dropout({a}, 0.7, False)", f"F.alpha_dropout({a}, 0.0)",
                           f"F.feature_alpha_dropout({a}, 0.3, False)", f"F.dropout({a}, 1.0)", f"{a}.clone().uniform_(0.5, 0.5)", f"{a}.clone().normal_(1.0, 0.0)",
                           f"{a}.clone().bernoulli_(1.0)", f"torch.eye({n}, 3)", f"torch.ones({n})", f"torch.vander({a}.flatten()[:4].tanh(), 3)",
                           f"torch.hamming_window({n})", f"{a} * 0 + torch.linspace(-1, 1, {n})", f"torch.feature_dropout({a}, 0.0, False)"]))


def sorted_out(w):
    """Sorts and searches. Which of equal numbers comes first is only said of those that are stable."""
    a = w.pick(FLOAT, INT, low=1)
    s = w.shape(a)
    d = random.randrange(len(s))
    k, down = random.randint(1, s[d]), random.choice(["True", "False"])
    float_a = w.pick(FLOAT, low=1)
    w.write(random.choice([f"{a}.sort({d}, {down}).values", f"torch.sort({a}, stable=True, dim={d}, descending={down})",
                           f"torch.argsort({a}, dim={d}, descending={down}, stable=True)", f"{a}.topk({k}, {d}, {down}).values", f"{a}.topk({k}, {d}).values",
                           f"{a}.kthvalue({k}, {d}).values", f"({a} * 1).median()", f"({a} * 1).median({d}).values", f"torch.msort({a})",
                           f"torch.bucketize({a}, torch.tensor([-1.0, 0.0, 0.5, 2.0]))", f"torch.bucketize({a}, {float_a}.flatten().sort().values, right={down})",
                           f"torch.searchsorted({float_a}.sort(-1).values, {float_a}, right={down})", f"torch.searchsorted({float_a}.flatten().sort().values, 0.25)",
                           f"{a}.gather({d}, {a}.argsort(dim={d}, stable=True))", f"{a}.sort({d}).values.flip({d})",
                           f"torch.zeros_like({a}).scatter({d}, {a}.argsort(dim={d}, stable=True), {a})", f"{a}.take_along_dim({a}.argsort(dim={d}, stable=True), {d})",
                           f"({a} + torch.arange({s[-1]}) * 20).sort(-1)", f"({a} + torch.arange({s[-1]}) * 20).topk({random.randint(1, s[-1])}, -1)"]))


def rare_write(w):
    """Writes at positions that are all different, or whose sum or extremum has one answer."""
    a = w.pick(FLOAT, low=1)
    s = w.shape(a)
    d = random.randrange(len(s))
    n = s[d]
    b = like(w, a)
    few = random.randint(1, n)
    where = f"torch.arange({few})" if random.random() < 0.5 else f"torch.arange({n - 1}, {n - 1 - few}, -1)"
    part, up = f"{b}.narrow({d}, 0, {few})", random.choice(["sum", "amax", "amin", "mean", "prod"])
    crowd = f"(({b} > 0).long() % {n})"
    more = [f"torch.diagonal_scatter({a}, {b}.diagonal() * 2)", f"{a}.index_put((torch.arange({min(s[:2])}), torch.arange({min(s[:2])})), {b}.sum())",
            f"{a}.index_put((torch.arange({min(s[:2])}), torch.zeros({min(s[:2])}, dtype=torch.int64)), {a}[:{min(s[:2])}, 0], accumulate=True)"] if len(s) > 1 else []
    w.write(random.choice(more + [f"{a}.index_copy({d}, {where}, {part})", f"{a}.index_fill({d}, {where}, 0.5)", f"{a}.index_fill({d}, {where}, {a}.mean())",
                                  f"{a}.index_add({d}, {where}, {part}, alpha=0.5)",
                                  f"{a}.index_reduce({d}, {where}, {part}, '{random.choice(['amax', 'amin', 'mean', 'prod'])}')",
                                  f"{a}.masked_scatter({b} > 0, {a}.flip(0))", f"{a}.scatter({d}, {b}.argsort(dim={d}, stable=True), {b})",
                                  f"{a}.scatter({d}, {b}.argsort(dim={d}, stable=True), 0.5, reduce='{random.choice(['add', 'multiply'])}')",
                                  f"{a}.scatter({d}, {b}.argsort(dim={d}, stable=True), {b}, reduce='{random.choice(['add', 'multiply'])}')",
                                  f"{a}.scatter_reduce({d}, {crowd}, {b}, '{up}', include_self={random.choice(['True', 'False'])})",
                                  f"{a}.scatter_add({d}, {crowd}, {b})", f"{a}.index_put((torch.arange({s[0]}) % 2 == 0,), {a}.mean())",
                                  f"{a}.index_put(({a} > 0,), torch.tensor(0.5))", f"{a}.index_put((torch.arange({s[0]}) // 2,), {b}, accumulate=True)",
                                  f"F.embedding_bag(torch.arange({n}) % 3, {w.weight([3, 4])}, torch.tensor([0, {n // 2}]), mode='{random.choice(['sum', 'mean', 'max'])}')",
                                  f"F.embedding_bag((torch.arange({n}) % 3)[None].repeat(2, 1), {w.weight([3, 4])}, mode='{random.choice(['sum', 'mean', 'max'])}')",
                                  f"F.embedding(torch.arange({n}) % 3, {w.weight([3, 2])}, padding_idx=0)", f"{a}[{crowd}.flatten()[:4] % {s[0]}]"]))


def rare_loss(w):
    a = w.pick(FLOAT, low=1, high=4)
    s, how = w.shape(a), random.choice(["mean", "sum", "none"])
    b = like(w, a)
    target = f"(torch.arange({m_rows([s[0], *s[2:], 1])}) % {s[1]}).view({[s[0], *s[2:]]})" if len(s) > 1 else ""
    more = [f"F.cross_entropy({a}, {target}, ignore_index=0, reduction='{how}') * 0.2", f"F.nll_loss({a}.log_softmax(1), {target}, reduction='{how}') * 0.2",
            f"F.cross_entropy({a}, {a}.softmax(1), reduction='{how}') * 0.1", f"F.gaussian_nll_loss({a}, {b}, {a}.abs() + 0.5)"] if target else []
    w.write(random.choice(more + [f"F.l1_loss({a}, {b}.sin(), reduction='{how}') * 0.1", f"F.huber_loss({a}, {b}.cos(), reduction='{how}', delta=0.7) * 0.1",
                                  f"F.smooth_l1_loss({a}, {b}.cos(), reduction='{how}', beta=0.5) * 0.1", f"F.mse_loss({a}, {b}.tanh(), reduction='{how}') * 0.1",
                                  f"F.binary_cross_entropy({a}.sigmoid(), {b}.sigmoid(), reduction='{how}') * 0.1",
                                  f"F.binary_cross_entropy_with_logits({a}, {b}.sigmoid(), {a}.abs(), pos_weight={w.weight([s[-1]])}.abs(), reduction='{how}') * 0.1",
                                  f"F.kl_div({a}, {b}.softmax(0), reduction='{how}') * 0.1", f"F.kl_div({a}, {b}, reduction='{how}', log_target=True) * 0.01",
                                  f"F.poisson_nll_loss({a}.tanh(), {b}.abs(), reduction='{how}') * 0.1", f"F.soft_margin_loss({a}, {b}.sign(), reduction='{how}') * 0.1",
                                  f"F.hinge_embedding_loss({a}, {b}.sign(), reduction='{how}') * 0.1",
                                  f"F.margin_ranking_loss({a}, {b}, {a}.sign(), reduction='{how}') * 0.1", f"F.triplet_margin_loss({a}, {b}.sin(), {b}.cos()) * 0.1",
                                  f"F.cosine_embedding_loss({a}.reshape({s[0]}, -1), {b}.reshape({s[0]}, -1).sin(), torch.ones({s[0]}))",
                                  f"F.pairwise_distance({a}, {b}.cos() + 0.2) * 0.3"]))


def derivative(w):
    """Derivatives by the names that they have in graphs with a backward."""
    a = w.pick(FLOAT, low=1, high=4)
    s = w.shape(a)
    g, d, n = f"{like(w, a)}.cos()", random.randrange(len(s)), 0
    n = s[d]
    x = f"{a}[{', '.join(['None'] * max(0, 4 - len(s)))}{', ' * (len(s) < 4)}...]"
    sizes = [1] * (4 - len(s)) + s
    one = [f"tanh_backward({g}, {a}.tanh())", f"sigmoid_backward({g}, {a}.sigmoid())", f"threshold_backward({g}, {a}, 0.1)", f"gelu_backward({g}, {a})",
           f"gelu_backward({g}, {a}, approximate='tanh')", f"silu_backward({g}, {a})", f"mish_backward({g}, {a})", f"hardswish_backward({g}, {a})",
           f"hardsigmoid_backward({g}, {a})", f"hardtanh_backward({g}, {a}, -0.5, 0.7)", f"leaky_relu_backward({g}, {a}, 0.2, False)",
           f"elu_backward({g}, 1.2, 1.0, 1.0, False, {a})", f"softplus_backward({g}, {a}, 1.0, 20.0)",
           f"_softmax_backward_data({g}, {a}.softmax({d}), {d}, torch.float32)", f"_log_softmax_backward_data({g}, {a}.log_softmax({d}), {d}, torch.float32)",
           f"mse_loss_backward({g}, {a}, {a}.sin(), 0)", f"glu_backward({g}, {a}.repeat_interleave(2, {d}), {d})",
           f"slice_backward({a}, {s[:d] + [2 * n + 1] + s[d + 1:]}, {d}, 1, {2 * n + 1}, 2)", f"select_backward({a}, {[3, *s]}, 0, 1)",
           f"unfold_backward({a}.unfold({d}, {min(2, n)}, 1), {s}, {d}, {min(2, n)}, 1)"]
    t = f"F.max_pool2d({x}, 2, 1, 1, return_indices=True)"
    window = [f"avg_pool2d_backward(F.avg_pool2d({x}, 2, 1, 1).cos(), {x}, [2, 2], [1, 1], [1, 1], False, True, None)",
              f"_adaptive_avg_pool2d_backward(F.adaptive_avg_pool2d({x}, 2).cos(), {x})",
              f"max_pool2d_with_indices_backward({t}[0].cos(), {x}, [2, 2], [1, 1], [1, 1], [1, 1], False, {t}[1])",
              f"reflection_pad2d_backward(F.pad({x}, (1, 0, 0, 1), mode='reflect').cos(), {x}, [1, 0, 0, 1])",
              f"replication_pad2d_backward(F.pad({x}, (1, 0, 2, 1), mode='replicate').cos(), {x}, [1, 0, 2, 1])",
              f"upsample_nearest2d_backward({x}.repeat(1, 1, 2, 2).cos(), {[2 * e for e in sizes[2:]]}, {sizes})",
              f"upsample_bilinear2d_backward({x}.repeat(1, 1, 2, 2).cos(), {[2 * e for e in sizes[2:]]}, {sizes}, False)",
              f"upsample_bicubic2d_backward({x}.repeat(1, 1, 2, 2).cos(), {[2 * e for e in sizes[2:]]}, {sizes}, True)",
              f"_upsample_nearest_exact2d_backward({x}.repeat(1, 1, 2, 2).cos(), {[2 * e for e in sizes[2:]]}, {sizes})",
              f"convolution_backward(F.conv2d({x}, {w.weight([2, sizes[1], 1, 1])}).cos(), {x}, {w.weight([2, sizes[1], 1, 1])}, [2], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, True])"]
    norm = [f"native_layer_norm_backward({g}, {a}, [{s[-1]}], {a}.mean(-1, keepdim=True), ({a}.var(-1, keepdim=True, correction=0) + 0.1).rsqrt(), {w.weight([s[-1]])}, {w.weight([s[-1]])}, [True, True, True])",
            f"embedding_dense_backward({g}, (torch.arange({m_rows([*s[:-1], 1])}) % 3).view({s[:-1]}), 3, -1, False)"]
    w.write(f"torch.ops.aten.{random.choice(random.choice([one, one, window, norm]))}")


def composite(w):
    """What plain exports keep whole, and functions that are formulas."""
    a = w.pick(FLOAT, low=1)
    s = w.shape(a)
    d, b = random.randrange(len(s)), like(w, a)
    n, row = s[d], f"{a}.flatten().tanh()"
    x, c, sizes = images(w, a, 2)
    count = m_rows([*s, 1])
    lines = [f"torch.erfc({a})", f"torch.special.erfcx({a}.abs())", f"torch.special.log_ndtr({a})", f"torch.special.ndtri({a}.sigmoid())", f"torch.special.i0({a}.tanh())",
             f"torch.special.i0e({a})", f"torch.special.i1({a}.tanh())", f"torch.special.i1e({a})", f"torch.polygamma(1, {a}.abs() + 0.5)", f"torch.mvlgamma({a}.abs() + 1.5, 2)",
             f"{a}.diff(n={random.randint(0, 3)}, dim={d})", f"{a}.diff(n=2, dim={d}, prepend={b})", f"torch.pdist({a}.reshape({s[0]}, -1)[:6])", f"torch.renorm({a}, 2, {d}, 1.0)",
             f"{a}.put(torch.tensor([0, {count - 1}]), {b}.flatten()[:1].expand(2), accumulate=True)", f"torch.isin({a}.long(), {b}.long())", f"torch.isreal({a})", f"torch.angle({a})",
             f"{a}.clamp_max({b})", f"{a}.clamp_min({b})", f"torch.ops.aten._safe_softmax({a}, {d})",
             f"torch.fake_quantize_per_tensor_affine({a}, 0.1, 2, -8, 7)", f"torch.fake_quantize_per_channel_affine({a}, torch.rand({n}) * 0 + 0.3, torch.zeros({n}, dtype=torch.int32), {d}, -8, 7)",
             f"F.multi_margin_loss({a}.reshape({s[0]}, -1), torch.zeros({s[0]}, dtype=torch.int64), p=2)",
             f"F.multilabel_margin_loss({a}.reshape({s[0]}, -1), torch.zeros({s[0]}, {count // s[0]}, dtype=torch.int64))",
             f"F.affine_grid({a}.flatten()[:1].tanh() * torch.ones(2, 2, 3), [2, 1, 3, 4], {random.choice(['True', 'False'])})",
             f"torch.nn.utils.rnn.pad_sequence([{a}, {a}[:1]], {random.choice(['True', 'False'])})", f"{a} * torch.kaiser_window({s[-1]}, periodic=False)",
             f"torch.addbmm({a}.flatten()[:1], {x}[0], {x}[0].transpose(1, 2)) * 0.1", f"torch.ops.aten.unsqueeze_copy({a}, {d}) + torch.ops.aten.alias_copy({a})[None]",
             f"torch.ops.aten.transpose_copy({a}, 0, {d})"]
    if n > 2:
        lines += [f"torch.gradient({a}, dim={d}, edge_order={random.choice([1, 2])})", f"torch.gradient({a}, spacing=0.5, dim={d})[0]"]
    if count > 5:
        size = random.randint(2, 5)
        how = f"{size}, {random.randint(1, 3)}, window=torch.hann_window({size}) + 0.2"
        lines += [f"torch.view_as_real(torch.stft({row}, {how}, return_complex=True))"] * 2
        if size % 2 == 0:
            lines += [f"torch.istft(torch.stft({row}, {size}, 1, return_complex=True) * 0.5, {size}, 1)"] * 2
    w.write(random.choice(lines))


STEPS = ["v.mul_(0.5)", "v.add_(1)", "v.sub_(t.mean())", "v.clamp_(-0.5, 0.8)", "v.relu_()", "v.neg_()", "v.zero_()", "v.fill_(0.25)", "v.tanh_()",
         "v.copy_(v.flip(0) * 0.5)", "v.masked_fill_(v > 0.5, 0.1)", "v.div_(2)", "v.exp_().clamp_(0, 3)", "v.pow_(2)", "v.index_fill_(0, torch.tensor([0]), 0.3)",
         "v.add_(v, alpha=0.5)", "v.sigmoid_()", "v.addcmul_(v, v, value=2)", "v.scatter_(0, torch.zeros_like(v, dtype=torch.int64), 0.5)", "v.lerp_(v * 0, 0.5)",
         "v.index_add_(0, torch.tensor([0]), v[:1])", "v.squeeze_()", "F.relu(v, inplace=True)", "v.floor_()", "v.abs_()",
         "v.index_copy_(0, torch.tensor([0]), v[-1:] * 1)"]
LOOKS = ["v.transpose(0, -1)", "v.flatten()", "v[0]", "v[:1]", "v[..., -1]", "v[::2]", "v.unsqueeze(0)", "v.view(-1)", "v.permute(*reversed(range(v.dim())))",
         "v.narrow(0, 0, 1)", "v.chunk(2, 0)[0]", "v.split(1, -1)[0]", "v.unbind(0)[-1]", "v", "v.view(v.shape)", "v.detach()", "v.expand(v.shape)", "v.squeeze()", "t",
         "t[-1]", "t.reshape(t.shape)[..., :1]", "v.select(-1, 0)", "v.unflatten(0, (1, -1))", "v.diagonal()", "v.contiguous()", "v.clone()"]


def through_views(w):
    """A copy is written to through views, and views of views, and both are seen later."""
    a = w.pick(FLOAT, FLOAT, INT, low=1)
    steps = [random.choice(LOOKS) if random.random() < 0.5 else random.choice(STEPS) for _ in range(random.randint(1, 4))]
    w.write(f"changed({a}, {', '.join(f'lambda v, t: {step}' for step in [*steps, random.choice(STEPS)])})")


def in_order(w):
    """Rows are sorted, worked on, and brought back."""
    a = w.pick(FLOAT, FLOAT, INT, low=1)
    s, b = w.shape(a), like(w, a)
    n = s[0]
    steps = ["y * 2 + 1", f"y + {b}[o]", f"{b} - y", "y.clone()", "y.double()", "y * o.view(-1, *[1] * (y.dim() - 1))", "y.cumsum(0)", "y - y.sum(0)", "y[o]", "y.flip(0)",
             f"y * torch.arange({n}).view(-1, *[1] * (y.dim() - 1))", "y.view(y.shape)", "torch.where(y > 0, y, y * 0)", "y + y[:1]", f"y * ({b} > 0)[o]", "y.unsqueeze(1).squeeze(1)"]
    if len(s) > 1:
        steps += ["y.flip(-1)", "y.cumsum(-1)", "y.sum(-1, keepdim=True)", "y.transpose(0, -1).transpose(0, -1)", "torch.cat([y, y], -1)", "y.flatten(1)", "y.tril()", "y[..., :1]",
                  "y.double() @ torch.eye(y.shape[-1], dtype=torch.float64)", "y.double().softmax(-1)", f"y.float() * torch.ones({n}, *{s[1:]})"]
    key = random.choice([f"torch.arange({n}) * {random.randint(1, 4)} % 5", f"{a}.reshape({n}, -1)[:, 0]", f"({a} > 0).reshape({n}, -1)[:, 0].long()"])
    chosen = ", ".join(f"lambda y, o: {random.choice(steps)}" for _ in range(random.randint(1, 3)))
    w.write(f"ordered({a}, {key}, {random.choice(['True', 'False'])}, {random.randrange(3)}, {chosen})")


def several(w):
    """Results together: some are used by nothing, some twice."""
    a = w.pick(FLOAT, low=1)
    d = random.randrange(len(w.shape(a)))
    w.write(random.choice([f"({a}.sin(), {a}, {a}.sin())", f"({a}[:1], {a}[1:], {a})", f"{a}.max({d})[::-1]", f"[*{a}.unbind({d})[:3], {a}.sum({d})]",
                           f"(torch.cat([{a}, {a}], {d}).chunk(2, {d}))", f"torch.stack([{a}, {a} * 2], {d}).unbind({d})",
                           f"({a} * 1, {a}.detach(), {a}.view({w.shape(a)}))", f"torch.split(torch.cat([{a}, {a}.cos()], {d}), {w.shape(a)[d]}, {d})",
                           f"({a}.tanh().tanh(), torch.zeros(2), {a}.tanh())", f"[part.sum() for part in {a}.chunk(3, {d})]"]))


BROAD = (WIDER + [rare_function, rare_reduction, volume, resampled, arranged, out_of_nothing, through_views] * 4 + [pair] * 5
         + [whole_numbers, sorted_out, rare_write, derivative, composite, in_order] * 3 + [rare_product, rare_loss, several] * 2)
