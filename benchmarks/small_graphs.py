# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The graphs of least_bytes.py: what they compute, how inputs and outputs are sharded, and the least that they must move.

A placement says for each mesh axis which dim it shards, or None: `0` is (0,) on a mesh of one axis. `least(n)` is None for a graph that only moves
elements; its least is found by brute force. For others it is a formula, with the reason: B(shape) are the bytes of a tensor of f32."""
import math
from typing import Any, Callable, NamedTuple

import torch
import torch.nn.functional as F


def B(*shape):
    return 4 * math.prod(shape)


def all_gather(n, size):
    return (n - 1) / n * size


def all_reduce(n, size):
    return 2 * all_gather(n, size)


class Graph(NamedTuple):
    function: Callable
    shapes: list
    sharded: dict  # {number of an input: placement}; others are replicated
    out: Any  # placement of every output
    least: Any = None
    why: str = "each element that a rank lacks, once"
    mesh: Any = None  # sizes of the axes dp and tp; None: one axis, of each number of ranks
    like: Any = None  # of spatial graphs: a smooth function that reads the same windows, where the function is none
    sums: Any = None  # of spatial graphs: how many numbers all ranks sum in the forward, and more in the backward

    def __hash__(self):  # each graph is one of its own
        return id(self)

    def __eq__(self, other):
        return self is other


ROWS, ALL = {0: 0}, None
BOTH = {0: 0, 1: 0}
OWN = "elements are a rank's own"
X = [(13, 5)]
MOVED = {
    "slice, first row cut off": Graph(lambda x: x[1:], X, ROWS, 0),
    "slice, last row cut off": Graph(lambda x: x[:-1], X, ROWS, 0),
    "slice, last three cut off": Graph(lambda x: x[:-3], [(14, 5)], ROWS, 0),
    "slice from the middle": Graph(lambda x: x[3:10], X, ROWS, 0),
    "slice of a third": Graph(lambda x: x[:4], [(12, 5)], ROWS, 0),
    "slice of columns, rows sharded": Graph(lambda x: x[:, 1:4], X, ROWS, 0),
    "slice, first columns": Graph(lambda x: x[:, 2:], [(5, 13)], {0: 1}, 1),
    "every second row": Graph(lambda x: x[::2], X, ROWS, 0),
    "every third row": Graph(lambda x: x[1::3], [(14, 5)], ROWS, 0),
    "rows to all": Graph(lambda x: x[2:7], X, ROWS, ALL),
    "one row to all": Graph(lambda x: x[4], X, ROWS, ALL),
    "differences": Graph(lambda x: x[1:] - x[:-1], [(12, 5)], ROWS, 0),
    "second differences": Graph(lambda x: x[2:] - 2 * x[1:-1] + x[:-2], [(15, 5)], ROWS, 0),
    "pad before": Graph(lambda x: F.pad(x, (0, 0, 1, 0)), X, ROWS, 0),
    "pad after": Graph(lambda x: F.pad(x, (0, 0, 0, 3)), X, ROWS, 0),
    "pad on both sides": Graph(lambda x: F.pad(x, (0, 0, 2, 2)), X, ROWS, 0),
    "pad with a value": Graph(lambda x: F.pad(x, (2, 1), value=1.0), [(5, 13)], {0: 1}, 1),
    "pad of the other dim": Graph(lambda x: F.pad(x, (1, 2)), X, ROWS, 0),
    "pad and cut": Graph(lambda x: F.pad(x, (0, 0, 1, -1)), X, ROWS, 0),
    "roll by one": Graph(lambda x: x.roll(1, 0), X, ROWS, 0),
    "roll back by two": Graph(lambda x: x.roll(-2, 0), X, ROWS, 0),
    "roll of the other dim": Graph(lambda x: x.roll(2, 1), X, ROWS, 0),
    "rolled and cut": Graph(lambda x: x.roll(3, 0)[2:9], X, ROWS, 0),
    "flip of the other dim": Graph(lambda x: x.flip(1), X, ROWS, 0),
    "flip": Graph(lambda x: x.flip(0), X, ROWS, 0),
    "flip of even parts": Graph(lambda x: x.flip(0), [(12, 5)], ROWS, 0),
    "flip and cut": Graph(lambda x: x.flip(0)[3:], X, ROWS, 0),
    "flip to all": Graph(lambda x: x.flip(0), X, ROWS, ALL),
    "cat of a tensor and a few rows": Graph(lambda x, y: torch.cat([x, y]), [(13, 5), (3, 5)], BOTH, 0),
    "cat, few rows first": Graph(lambda x, y: torch.cat([y, x]), [(13, 5), (3, 5)], BOTH, 0),
    "cat of three": Graph(lambda x, y, z: torch.cat([y, x, z]), [(13, 5), (3, 5), (7, 5)], BOTH | {2: 0}, 0),
    "cat of equal parts": Graph(lambda x, y: torch.cat([x, y]), [(12, 5), (12, 5)], BOTH, 0),
    "cat of the other dim": Graph(lambda x, y: torch.cat([x, y], 1), [(13, 5), (13, 3)], BOTH, 0),
    "cat of replicated rows": Graph(lambda x, y: torch.cat([y, x]), [(13, 5), (2, 5)], ROWS, 0),
    "cat to all": Graph(lambda x, y: torch.cat([x, y]), [(13, 5), (3, 5)], BOTH, ALL),
    "halves change places": Graph(lambda x: torch.cat([x[7:], x[:7]]), X, ROWS, 0),
    "a row before, a row less": Graph(lambda x, y: torch.cat([y, x[:-1]]), [(13, 5), (1, 5)], ROWS, 0),
    "stack": Graph(lambda x, y: torch.stack([x, y], 1), [(13, 5), (13, 5)], BOTH, 0),
    "split of the other dim": Graph(lambda x: x.split([2, 3], 1)[1], X, ROWS, 0),
    "split into unequal parts": Graph(lambda x: x.split([3, 8, 2]), X, ROWS, 0),
    "chunks": Graph(lambda x: x.chunk(3), X, ROWS, 0),
    "chunks of equal parts": Graph(lambda x: x.chunk(2), [(12, 5)], ROWS, 0),
    "view, split": Graph(lambda x: x.view(6, 2, 5), [(12, 5)], ROWS, 0),
    "view, merge": Graph(lambda x: x.flatten(0, 1), [(6, 2, 5)], ROWS, 0),
    "view, merge of a short dim": Graph(lambda x: x.flatten(), [(5, 7)], ROWS, 0),
    "view, heads": Graph(lambda x: x.view(5, 6, 3).transpose(0, 1), [(5, 18)], {0: 1}, 0),
    "view, merge and split": Graph(lambda x: x.reshape(4, 3, 5), [(12, 5)], ROWS, 0),
    "view, other rows": Graph(lambda x: x.reshape(12, 5), [(15, 4)], ROWS, 0),
    "view, long rows": Graph(lambda x: x.reshape(7, 9), [(9, 7)], ROWS, 0),
    "view, rows to columns": Graph(lambda x: x.reshape(3, 4, 5).transpose(0, 1).reshape(12, 5), [(12, 5)], ROWS, 0),
    "transpose": Graph(lambda x: x.t(), X, ROWS, 1),
    "transpose to the other dim": Graph(lambda x: x.t(), [(12, 6)], ROWS, 0),
    "permutation of three dims": Graph(lambda x: x.permute(2, 0, 1), [(13, 3, 5)], ROWS, 1),
    "unsqueeze and expand": Graph(lambda x: x[:, None].expand(13, 3, 5), X, ROWS, 0),
    "repeat": Graph(lambda x: x.repeat(2, 1), X, ROWS, 0),
    "repeat of the other dim": Graph(lambda x: x.repeat(1, 2), X, ROWS, 0),
    "each row twice": Graph(lambda x: x.repeat_interleave(2, 0), X, ROWS, 0),
    "rows of two in turn": Graph(lambda x, y: torch.stack([x, y], 1).flatten(0, 1), [(13, 5), (13, 5)], BOTH, 0),
    "index_select of the other dim": Graph(lambda x: x.index_select(1, torch.tensor([0, 3, 3])), X, ROWS, 0),
    "index_select": Graph(lambda x: x.index_select(0, torch.tensor([12, 0, 3, 3, 7])), X, ROWS, 0),
    "gather everything": Graph(lambda x: x * 1.5, X, ROWS, ALL),
    "select": Graph(lambda x: x[:, 2], X, ROWS, 0),
    "lower triangle": Graph(lambda x: x.tril(), [(13, 13)], ROWS, 0),
    "upper triangle": Graph(lambda x: x.triu(1), [(13, 13)], {0: 1}, 1),
    # Of two axes.
    "slice, 2 x 2": Graph(lambda x: x[1:, 2:], [(13, 7)], {0: (0, 1)}, (0, 1), mesh=(2, 2)),
    "pad, 2 x 2": Graph(lambda x: F.pad(x, (1, 2, 2, 0)), [(13, 7)], {0: (0, 1)}, (0, 1), mesh=(2, 2)),
    "flip, 2 x 2": Graph(lambda x: x.flip(0), [(13, 7)], {0: (0, 1)}, (0, 1), mesh=(2, 2)),
    "flip of both dims, 2 x 2": Graph(lambda x: x.flip(0, 1), [(13, 7)], {0: (0, 1)}, (0, 1), mesh=(2, 2)),
    "roll, nested": Graph(lambda x: x.roll(1, 0), X, {0: (0, 0)}, (0, 0), mesh=(2, 2)),
    "cat, nested": Graph(lambda x, y: torch.cat([y, x]), [(13, 5), (3, 5)], {0: (0, 0), 1: (0, 0)}, (0, 0), mesh=(2, 2)),
    "flip, nested": Graph(lambda x: x.flip(0), X, {0: (0, 0)}, (0, 0), mesh=(2, 2)),
    "slice with a copy": Graph(lambda x: x[1:], X, {0: (0, None)}, (0, None), mesh=(2, 2)),
    "split, 2 x 2": Graph(lambda x: x.split([3, 10]), [(13, 7)], {0: (0, 1)}, (0, 1), mesh=(2, 2)),
    "transpose, 2 x 2": Graph(lambda x: x.t(), [(13, 7)], {0: (0, 1)}, (1, 0), mesh=(2, 2)),
}
LOOKED_UP = torch.tensor([0, 5, 11, 3])


def low_pass(x, weight, count):
    """The lowest frequencies of columns, each times a complex weight."""
    z = torch.fft.rfft(x, dim=0)[:count] * torch.view_as_complex(weight)
    return torch.fft.irfft(F.pad(z, (0, 0, 0, len(x) // 2 + 1 - count)), n=len(x), dim=0)


COMPUTED = {
    "product, columns then rows": Graph(lambda x, v, w: (x @ v).relu() @ w, [(5, 7), (7, 12), (12, 3)], {1: 1, 2: 0}, ALL,
                                        lambda n: all_reduce(n, B(5, 3)), "the sum over the hidden features is of all ranks"),
    "product to shards": Graph(lambda x, w: x @ w, [(6, 12), (12, 5)], {0: 1, 1: 0}, 0, lambda n: all_gather(n, B(6, 5)), "reduce-scatter of the product"),
    "product, rows sharded": Graph(lambda x, w: x @ w, [(13, 7), (7, 5)], ROWS, 0, lambda n: 0, "each row is its rank's own"),
    "product, columns sharded": Graph(lambda x, w: x @ w, [(13, 7), (7, 6)], {1: 1}, 1, lambda n: 0, "each column is its rank's own"),
    "product, all of both": Graph(lambda x, w: x @ w, [(12, 7), (7, 12)], {0: 0, 1: 1}, 0, lambda n: all_gather(n, B(7, 12)),
                                  "each rank lacks the other columns of the second"),
    "product, inner dim of one": Graph(lambda x, w: x @ w, [(5, 12), (12, 7)], {1: 0}, ALL, lambda n: all_reduce(n, B(5, 7)),
                                       "a sum over all ranks, which is less than the operand twice over"),
    "batched product": Graph(lambda x, w: x @ w, [(6, 3, 7), (6, 7, 5)], BOTH, 0, lambda n: 0, "each matrix is its rank's own"),
    "outer product": Graph(lambda x, y: x[:, None] * y, [(13,), (5,)], ROWS, 0, lambda n: 0, OWN),
    "linear with a bias": Graph(lambda x, w, b: F.linear(x, w, b), [(5, 12), (7, 12), (7,)], {0: 1, 1: 1}, ALL, lambda n: all_reduce(n, B(5, 7)),
                                "a sum over all ranks"),
    "sum to a number": Graph(lambda x: x.sum(), X, ROWS, ALL, lambda n: all_reduce(n, 4), "one number"),
    "mean over the sharded dim": Graph(lambda x: x.mean(0), X, ROWS, ALL, lambda n: all_reduce(n, B(5)), "a sum of five"),
    "sum over the other dim": Graph(lambda x: x.sum(1), X, ROWS, 0, lambda n: 0, OWN),
    "sum to shards": Graph(lambda x: x.sum(0), [(13, 6)], ROWS, 0, lambda n: all_gather(n, B(6)), "reduce-scatter of the sums"),
    "largest": Graph(lambda x: x.amax(0), X, ROWS, ALL, lambda n: all_reduce(n, B(5)), "the largest of all ranks"),
    "place of the largest": Graph(lambda x: x.argmax(0), X, ROWS, ALL, lambda n: all_reduce(n, B(5)) + all_reduce(n, 2 * B(5)),
                                  "the largest of all ranks, then the first place (of eight bytes) that has it"),
    "variance": Graph(lambda x: x.var(0), X, ROWS, ALL, lambda n: 2 * all_reduce(n, B(5)), "a sum, and one of squares around its mean"),
    "softmax over the other dim": Graph(lambda x: x.softmax(1), X, ROWS, 0, lambda n: 0, OWN),
    "softmax over the sharded dim": Graph(lambda x: x.softmax(0), X, ROWS, 0, lambda n: 2 * all_reduce(n, B(5)), "a maximum and a sum of each column"),
    "logarithm of sums": Graph(lambda x: x.logsumexp(0), X, ROWS, ALL, lambda n: 2 * all_reduce(n, B(5)), "a maximum and a sum of each column"),
    "layer norm": Graph(lambda x: F.layer_norm(x, (5,)), X, ROWS, 0, lambda n: 0, OWN),
    "layer norm of a sharded dim": Graph(lambda x: F.layer_norm(x, (13,)), [(5, 13)], {0: 1}, 1, lambda n: 2 * all_reduce(n, B(5)),
                                         "a sum, and one of squares around its mean, of each row"),
    "rms norm over the sharded dim": Graph(lambda x: x * (x.pow(2).mean(0, keepdim=True) + 1e-3).rsqrt(), X, ROWS, 0,
                                           lambda n: all_reduce(n, B(5)), "one sum of squares for each column"),
    "norm of columns": Graph(lambda x: x.norm(dim=0), X, ROWS, ALL, lambda n: all_reduce(n, B(5)), "one sum of squares for each column"),
    "embedding, rows sharded": Graph(lambda t: F.embedding(LOOKED_UP, t), [(12, 5)], ROWS, ALL,
                                     lambda n: all_reduce(n, B(4, 5)), "each row is looked up by its owner and needed by all"),
    "embedding, columns sharded": Graph(lambda t: F.embedding(LOOKED_UP, t), [(12, 6)], {0: 1}, 1, lambda n: 0, "each rank looks up its columns"),
    "lookups sharded": Graph(lambda x: x.gather(1, torch.zeros(13, 2, dtype=torch.int64)), X, ROWS, 0, lambda n: 0, OWN),
    "attention, heads sharded": Graph(lambda q: F.scaled_dot_product_attention(q, q, q), [(2, 6, 5, 3)], {0: 1}, 1, lambda n: 0, "heads are a rank's own"),
    "cumulative sum of the other dim": Graph(lambda x: x.cumsum(1), X, ROWS, 0, lambda n: 0, OWN),
    "cumulative sum": Graph(lambda x: x.cumsum(0), X, ROWS, 0, lambda n: all_gather(n, n * B(5)), "each rank has to know the sums of the ranks before it"),
    "low frequencies": Graph(lambda x: torch.view_as_real(torch.fft.rfft(x, dim=0)[:2]), X, ROWS, ALL, lambda n: all_reduce(n, B(2, 5, 2)),
                             "what each rank's rows have of the two that are kept is added up"),
    "low frequencies, weighted": Graph(lambda x, w: low_pass(x, w, 2), [(24, 5), (2, 5, 2)], ROWS, 0, lambda n: all_reduce(n, B(2, 5, 2)),
                                       "the two that are kept are added up, and each rank makes its rows of them"),
    "low frequencies, 2 x 2": Graph(lambda x: torch.view_as_real(torch.fft.rfft2(x)[:2, :2]), [(12, 14)], {0: (0, 1)}, (None, None),
                                    lambda n: all_reduce(4, B(2, 2, 2)), "what each rank's part has of the four that are kept is added up", (2, 2)),
    "filter of all frequencies": Graph(lambda x, w: low_pass(x, w, 13), [(24, 12), (13, 12, 2)], ROWS, 0, lambda n: 2 * all_gather(n, B(24, 12)) / n,
                                       "each rank gets the whole of some columns, and gives it back"),
    "bias and activation": Graph(lambda x, b: F.gelu(x + b), [(13, 6), (6,)], {0: 1, 1: 0}, 1, lambda n: 0, OWN),
    "standardised columns": Graph(lambda x: (x - x.mean(0)) / 2, X, ROWS, 0, lambda n: all_reduce(n, B(5)), "one sum for each column"),
    "masked sum": Graph(lambda x: torch.where(x > 0, x, 0).sum(0), X, ROWS, ALL, lambda n: all_reduce(n, B(5)), "a sum of five"),
    "largest three of each row": Graph(lambda x: x.topk(3, 1)[0], X, ROWS, 0, lambda n: 0, OWN),
    "sorted rows": Graph(lambda x: x.sort(1)[0], X, ROWS, 0, lambda n: 0, OWN),
    "mean square error": Graph(lambda x, y: F.mse_loss(x, y), [(13, 5), (13, 5)], BOTH, ALL, lambda n: all_reduce(n, 4), "one number"),
    "cross entropy, rows sharded": Graph(lambda x: F.cross_entropy(x, torch.arange(13) % 5), X, ROWS, ALL, lambda n: all_reduce(n, 4), "one number"),
    "cross entropy, classes sharded": Graph(lambda x: F.cross_entropy(x, torch.arange(5) * 3), [(5, 13)], {0: 1}, ALL,
                                            lambda n: 2 * all_reduce(n, B(5)) + all_reduce(n, 4),
                                            "a maximum and a sum of each row, and the sum of what is at the labels"),
    "product, 2 x 2": Graph(lambda x, w: x @ w, [(13, 7), (7, 6)], {0: (0, None), 1: (None, 1)}, (0, 1), lambda n: 0, OWN, (2, 2)),
    "product of inner parts, 2 x 2": Graph(lambda x, w: x @ w, [(12, 6), (6, 5)], {0: (0, 1), 1: (None, 0)}, (0, None), lambda n: all_reduce(2, B(6, 5)),
                                           "a sum over two ranks of a half of the rows", (2, 2)),
    "sum to a number, 2 x 2": Graph(lambda x: x.sum(), [(13, 7)], {0: (0, 1)}, (None, None), lambda n: all_reduce(4, 4), "one number", (2, 2)),
}
# The derivative of sum(f(x) * w) by x, where w is sharded as f(x) is. What was moved comes back as a cotangent, and the loss is a number that all have.
BACKWARD = {f"backward of: {name}": MOVED[name] for name in (
    "slice, first row cut off", "slice from the middle", "every second row", "pad on both sides", "roll by one", "flip", "cat of three",
    "halves change places", "view, merge and split", "repeat", "slice, 2 x 2")}
