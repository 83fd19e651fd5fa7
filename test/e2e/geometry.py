# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators of runtime/examples/geometry_ops.c for PyTorch, and one for a device, each written with its own ops: what the functions in C
are compared with."""
import torch
from torch.library import custom_op


@custom_op("geometry::knn", mutates_args=())
def knn(query: torch.Tensor, points: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    distances = (query[:, None] - points[None]).square().sum(-1).sqrt()
    nearest = distances.sort(dim=1, stable=True)
    return nearest.values[:, :k].contiguous(), nearest.indices[:, :k].contiguous()


@knn.register_fake
def _(query, points, k):
    return query.new_empty(query.shape[0], k), query.new_empty(query.shape[0], k, dtype=torch.int64)


def _knn_setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0], inputs[1], *output)


def _knn_backward(ctx, grad, _):
    query, points, distances, neighbours = ctx.saved_tensors
    toward = (query[:, None] - points[neighbours]) * (grad / distances)[..., None]
    return toward.sum(1), torch.zeros_like(points).index_add(0, neighbours.flatten(), -toward.flatten(0, 1)), None


knn.register_autograd(_knn_backward, setup_context=_knn_setup)


@custom_op("geometry::ball_query", mutates_args=())
def ball_query(query: torch.Tensor, points: torch.Tensor, radius: float, most: int) -> torch.Tensor:
    inside = (query[:, None] - points[None]).square().sum(-1) <= radius * radius
    out = torch.full((query.shape[0], most), -1)
    for row, near in zip(out, inside):
        first = near.nonzero().flatten()[:most]
        row[:len(first)] = first
    return out


@ball_query.register_fake
def _(query, points, radius, most):
    return query.new_empty(query.shape[0], most, dtype=torch.int64)


@custom_op("geometry::to_grid", mutates_args=())
def to_grid(values: torch.Tensor, cells: torch.Tensor, size: int) -> torch.Tensor:
    return values.new_zeros(size, values.shape[1]).index_add(0, cells, values)


@to_grid.register_fake
def _(values, cells, size):
    return values.new_empty(size, values.shape[1])


@custom_op("geometry::from_grid", mutates_args=())
def from_grid(grid: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
    return grid[cells]


@from_grid.register_fake
def _(grid, cells):
    return grid.new_empty(cells.shape[0], grid.shape[1])


def _keep_cells(ctx, inputs, output):
    ctx.save_for_backward(inputs[1])
    ctx.size = inputs[0].shape[0]


to_grid.register_autograd(lambda ctx, grad: (from_grid(grad, ctx.saved_tensors[0]), None, None), setup_context=_keep_cells)
from_grid.register_autograd(lambda ctx, grad: (to_grid(grad, ctx.saved_tensors[0], ctx.size), None), setup_context=_keep_cells)


@custom_op("geometry::smooth", mutates_args=())
def smooth(image: torch.Tensor, reach: int) -> torch.Tensor:
    return torch.stack([image.roll(shift, 0) for shift in range(-reach, reach + 1)]).mean(0)


@smooth.register_fake
def _(image, reach):
    return torch.empty_like(image)


def _keep_reach(ctx, inputs, output):
    ctx.reach = inputs[1]


smooth.register_autograd(lambda ctx, grad: (smooth(grad, ctx.reach), None), setup_context=_keep_reach)


@custom_op("geometry::halves", mutates_args=())
def halves(x: torch.Tensor) -> torch.Tensor:
    return torch.cat(x.chunk(2, 1)[::-1], 1)


@halves.register_fake
def _(x):
    return torch.empty_like(x)


@custom_op("geometry::scaled", mutates_args=())
def scaled(x: torch.Tensor, by: torch.Tensor, power: int = 2) -> torch.Tensor:
    return x * by**power


@scaled.register_fake
def _(x, by, power=2):
    return torch.empty_like(x)


@custom_op("geometry::repeated", mutates_args=())
def repeated(x: torch.Tensor, count: int) -> torch.Tensor:
    return x.repeat(count, 1)


@repeated.register_fake
def _(x, count):
    return x.new_empty(count, x.shape[1])


@custom_op("geometry::per_group", mutates_args=())
def per_group(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    return (x.view(-1, by.shape[0]) * by).flatten()


@per_group.register_fake
def _(x, by):
    return torch.empty_like(x)
