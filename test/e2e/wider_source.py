# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""More manners of writing lines of random programs (program_source.py): images, writes at indices, views of views, losses. Programs with these also
have layouts of every kind: dims that two axes shard, blocks, and extents that are written out."""
import random

from program_source import EXTENTS, FLOAT, MANNERS


def spatial(w):
    a = w.pick(FLOAT, low=2, high=4)
    s = w.shape(a)
    x = a if len(s) > 2 else f"{a}[None]"
    c, planar = s[-3] if len(s) == 4 else s[1] if len(s) == 3 else s[0], len(s) == 4
    if planar:
        c = s[1]
    out, k = random.choice(EXTENTS[:9]), random.choice([1, 2, 3])
    pad, stride = random.randrange(k), random.choice([1, 1, 2])
    groups = random.choice([g for g in (1, 1, 2, 3, c) if c % g == 0])
    d = "2d" if planar else "1d"
    kernel = w.weight([groups * out, c // groups] + [k] * (2 if planar else 1))
    bias = random.choice(["None", w.weight([groups * out])])
    lines = [f"F.conv{d}({x}, {kernel}, {bias}, {stride}, {pad}, 1, {groups}) * 0.3"] * 3
    lines += [f"F.group_norm({x}, {groups})", f"F.group_norm({x}, {groups}, {w.weight([c])}, {w.weight([c])})",
              f"F.batch_norm({x}, {w.weight([c])} * 0.1, {w.weight([c])}.abs() + 0.5, {w.weight([c])}, {w.weight([c])})"]
    if planar:
        lines += [f"F.max_pool2d({x}, {k}, {stride}, {min(pad, k // 2)})", f"F.avg_pool2d({x}, {k}, {stride})",
                  f"F.adaptive_avg_pool2d({x}, 1)", f"F.avg_pool2d({x}, {k}, {stride}, {k // 2}, True, False)",
                  f"F.pixel_shuffle({x}, 2)", f"F.pixel_unshuffle({x}, 2)", f"F.interpolate({x}, scale_factor=2)"]
    w.write(random.choice(lines))


def written(w):
    """Writes at indices. Sums there have one right answer; where one of several writes wins, nobody says which."""
    a = w.pick(FLOAT, low=1)
    s = w.shape(a)
    d = random.randrange(len(s))
    i = f"(torch.arange({s[d]}) * 3 % {random.randint(1, s[d])})"
    w.write(random.choice([f"{a}.index_add({d}, {i}, {a})", f"torch.zeros_like({a}).scatter_add({d}, ({a} > 0).long() % {s[d]}, {a})",
                           f"torch.zeros({s[0] + 2}, {', '.join(map(str, s[1:]))}{',' * (len(s) > 1)}).index_add(0, torch.arange({s[0]}) // 2, {a})"
                           if len(s) > 1 else f"torch.zeros({s[0] + 2}).index_add(0, torch.arange({s[0]}) // 2, {a})",
                           f"{a}.index_put((torch.tensor([0]),), {a}[:1] * 2, accumulate=True)",
                           f"{a}.scatter({d}, torch.zeros_like({a}, dtype=torch.int64), 0.5)", f"F.one_hot({a}.argmax({d}), {s[d]})",
                           f"{a}.masked_fill({a} > {a}.mean({d}, keepdim=True), 0.5)"]))


def deeper_view(w):
    """Splits, merges and permutations of dims after one another, as heads and windows are made."""
    a = w.pick(low=2)
    s = w.shape(a)
    d = random.randrange(len(s))
    k = random.choice([f for f in (2, 3, 4, 5, 6) if s[d] % f == 0] or [1])
    order = random.sample(range(len(s) + 1), len(s) + 1)
    apart = f"{a}.unflatten({d}, ({k}, {s[d] // k}))" if random.random() < 0.5 else f"{a}.unflatten({d}, ({s[d] // k}, {k}))"
    e = random.randrange(len(s))
    w.write(random.choice([f"{apart}.permute({order})", f"{apart}.permute({order}).flatten({e}, {e + 1})", f"{apart}.transpose({d}, {d + 1}).flatten({d}, {d + 1})",
                           f"{apart}.select({d}, 0)", f"{apart}.select({d + 1}, 0)", f"{apart}.unbind({d})[:2]", f"{apart}.chunk(2, {d})[0]", f"{apart}.flip({d})",
                           f"{apart}.roll(1, {d})", f"{apart}.sum({d})" if w.values[a].dtype == FLOAT else f"{apart}", f"{apart}[..., None].expand({', '.join(['-1'] * (len(s) + 1))}, 2)",
                           f"torch.cat([{apart}, {apart}], {d + 1}).flatten({d}, {d + 1})", f"{a}.reshape(-1).roll(2)", f"{a}.roll((1, 2), (0, 1))",
                           f"F.pad({a}, (1, 0, 2, 1))", f"F.pad({a}, (-1, 1))", f"{a}.narrow({d}, {s[d] // 3}, {s[d] - s[d] // 3})"]))


def scored(w):
    """Losses and statistics."""
    a = w.pick(FLOAT, low=2, high=3)
    s = w.shape(a)
    target = f"(torch.arange({s[0]}) % {s[1]})"
    more = [f"F.cross_entropy({a}, {target})", f"F.nll_loss({a}.log_softmax(1), {target}, reduction='sum') * 0.1",
            f"F.cross_entropy({a}, {target}, {w.weight([s[1]])}.abs(), label_smoothing=0.1)", f"F.cross_entropy({a}, {target}, reduction='none')"] if len(s) == 2 else []
    d = random.randrange(len(s))
    w.write(random.choice(more + [f"F.mse_loss({a}, {a}.tanh())", f"F.smooth_l1_loss({a}, {a} * 0.5)", f"F.binary_cross_entropy_with_logits({a}, {a}.sigmoid())",
                                  f"F.kl_div({a}.log_softmax({d}), {a}.softmax({d}), reduction='batchmean')", f"torch.var_mean({a}, {d}, correction=0)", f"torch.std_mean({a}, {d}, correction=0, keepdim=True)",
                                  f"{a}.mean(({d}, -1))" if d != len(s) - 1 else f"{a}.mean({d})", f"torch.addmm({w.weight([s[-1]])}, {a}.flatten(0, -2), {w.weight([s[-1], s[-1]])}) * 0.3",
                                  f"torch.aminmax({a}, dim={d})", f"{a}.nan_to_num(0.0)", f"F.cosine_similarity({a}, {a}.tanh() + 0.2, {d})", f"torch.cdist({a}, {a}.tanh() + 0.3)",
                                  f"{a}.diff(dim={d})", f"torch.bmm({a}[None].flatten(0, -3), {a}[None].flatten(0, -3).mT) * 0.2"]))


WIDER = MANNERS + [spatial] * 4 + [written] * 3 + [deeper_view] * 8 + [scored] * 4


def any_layout(shape, mesh, chosen):
    """A layout of any kind: plain shards, dims that two axes shard, blocks, and extents that are written out, zeros among them."""
    axes = {}
    for axis, count in (one.split("=") for one in mesh.split(",")):
        if not shape or chosen.random() < 0.35:
            continue
        dim = chosen.randrange(len(shape))
        taken = [where for where in axes.values() if where.startswith(f"S({dim}")]
        if any("," in where for where in taken):
            continue
        blocks = [k for k in (2, 3, 4, 5, 6) if shape[dim] % k == 0]
        kind = chosen.random()
        if kind < 0.25 and blocks and not taken:
            axes[axis] = f"S({dim}, blocks = {chosen.choice(blocks)})"
        elif kind < 0.5 and not taken:
            cuts = [0, *sorted(chosen.randint(0, shape[dim]) for _ in range(int(count) - 1)), shape[dim]]
            axes[axis] = f"S({dim}, sizes = [{', '.join(str(b - a) for a, b in zip(cuts, cuts[1:]))}])"
        else:
            axes[axis] = f"S({dim})"
    return axes
