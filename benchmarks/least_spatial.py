# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What graphs over sharded spatial dims must move at least, whatever a program does. docs/least-bytes-spatial.md has the reasons.

What a set of ranks makes depends on what others have only through the numbers that it gets. So the derivative of the one by the other factors through them,
and its rank is at most their number. The same holds for what the set gives. A rank of the set gets or gives the average of it at least."""
import functools
import itertools
import math

import torch


def mesh_of(graph, n):
    return graph.mesh or (n,)


def placement(given, mesh):
    """A dim, or None, for each axis."""
    return given if isinstance(given, tuple) else (given,) * len(mesh)


def held(shape, dims, mesh, at):
    """Which elements of a tensor the rank at a coordinate has."""
    begin, end = [0] * len(shape), list(shape)
    for dim, n, i in zip(dims, mesh, at, strict=True):
        if dim is not None:
            length = -(-(end[dim] - begin[dim]) // n)
            begin[dim], end[dim] = min(begin[dim] + i * length, end[dim]), min(begin[dim] + (i + 1) * length, end[dim])
    mask = torch.zeros(shape, dtype=torch.bool)
    mask[tuple(slice(b, e) for b, e in zip(begin, end))] = True
    return mask


def chunks(size, n):
    """The sizes of PyTorch's chunks."""
    length = -(-size // n)
    return [max(0, min(length, size - i * length)) for i in range(n)]


def outputs(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


@functools.cache
def derivative(function, shapes, seed=1, slope=None):
    """Of the result, a row for each element, by the elements of the first input, at random values or near a slope of these."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        image, *weights = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
        image = image if slope is None else image / 10000 + slope
        matrix = torch.autograd.functional.jacobian(lambda x: function(x, *weights), image)
    result = matrix.shape[:matrix.dim() - image.dim()]
    return matrix.reshape(math.prod(result), -1), result


def masks(graph, n, result):
    """Which elements of the result, and which of the image, each rank has."""
    mesh, ranks = mesh_of(graph, n), list(itertools.product(*map(range, mesh_of(graph, n))))
    return ([held(result, placement(graph.out, mesh), mesh, rank).flatten() for rank in ranks],
            [held(graph.shapes[0], placement(graph.sharded[0], mesh), mesh, rank).flatten() for rank in ranks])


def rank_of(matrix):
    matrix = matrix[(matrix != 0).any(1)]
    matrix = matrix[:, (matrix != 0).any(0)]
    return int(torch.linalg.matrix_rank(matrix)) if matrix.numel() else 0


def steep(shape, others):
    """Values at which a window finds its largest element as far as it reaches into what others have, and no two windows the same one."""
    places = torch.cartesian_prod(*(torch.arange(size, dtype=torch.float64) for size in shape))
    far = torch.cdist(places, places[~others], p=1).amin(1)
    return [(1000 * others + far + sign * places[:, 2:].sum(1) / 100).reshape(shape) for sign in (-1, 1)]


def rank_across(graph, makes, others):
    """The rank of what some ranks make by what others have: the largest over some values, where it depends on them."""
    if not graph.like:
        return rank_of(derivative(graph.function, tuple(graph.shapes))[0][makes][:, others])
    slopes = steep(graph.shapes[0], others)
    return max(rank_of(derivative.__wrapped__(graph.function, tuple(graph.shapes), 1, slope)[0][makes][:, others]) for slope in slopes)


@functools.cache
def least_by_cuts(graph, n):
    """Bytes that some rank gets or gives at least, in any number of exchanges."""
    makes, has = masks(graph, n, derivative(graph.like or graph.function, tuple(graph.shapes))[1])
    least = 0
    for size in range(1, len(makes)):
        for some in itertools.combinations(range(len(makes)), size):
            made, had = (sum(parts[rank] for rank in some) > 0 for parts in (makes, has))
            if rank := rank_across(graph, made, ~had):
                least = max(least, rank / min(size, len(makes) - size))
    return 4 * least


@functools.cache
def of_one_exchange(graph, n):
    """Bytes that some rank gets or gives in one exchange at least: what is between two ranks is the rank of what the one makes by what the other has."""
    matrix, result = derivative(graph.like or graph.function, tuple(graph.shapes))
    makes, has = masks(graph, n, result)
    between = torch.tensor([[rank_of(matrix[made][:, had]) * (a != b) for b, had in enumerate(has)] for a, made in enumerate(makes)])
    return 4 * int(max(between.sum(0).max(), between.sum(1).max()))
