/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Operators on point clouds and grids, as functions that a plan registers (geometry_ops.yaml,
 * docs/custom-ops.md):
 *
 *   cc -O2 -shared -fPIC -I runtime/include runtime/examples/geometry_ops.c -o geometry_ops.so -lm
 *
 * All tensors are of double, and positions in tensors are int64_t.
 */
#include "shardrt_op.h"

#include <math.h>

static double *reals(const shardrt_op_tensor *tensor) { return (double *)tensor->data; }
static int64_t *integers(const shardrt_op_tensor *tensor) { return (int64_t *)tensor->data; }

static double squared_distance(const double *x, const double *y, int64_t dims) {
  double sum = 0;
  for (int64_t d = 0; d < dims; ++d)
    sum += (x[d] - y[d]) * (x[d] - y[d]);
  return sum;
}

/* geometry::knn(Tensor query, Tensor points, int k) -> (Tensor distances, Tensor neighbours)
 *
 * The k points nearest to each of the queries, nearest first, and of those as near the first. */
typedef struct knn_work {
  const shardrt_op_call *call;
  int64_t k;
} knn_work;

static void knn_of_queries(void *arg, int64_t begin, int64_t end) {
  const knn_work *work = (const knn_work *)arg;
  const shardrt_op_call *call = work->call;
  const double *query = reals(&call->inputs[0]), *points = reals(&call->inputs[1]);
  int64_t dims = call->inputs[0].sizes[1], count = call->inputs[1].sizes[0];
  for (int64_t q = begin; q < end; ++q) {
    double *distances = reals(&call->outputs[0]) + q * work->k;
    int64_t *neighbours = integers(&call->outputs[1]) + q * work->k;
    int64_t found = 0;
    for (int64_t p = 0; p < count; ++p) {
      double distance = sqrt(squared_distance(query + q * dims, points + p * dims, dims));
      if (found == work->k && distance >= distances[found - 1])
        continue;
      int64_t at = found < work->k ? found++ : work->k - 1;
      for (; at > 0 && distance < distances[at - 1]; --at) {
        distances[at] = distances[at - 1];
        neighbours[at] = neighbours[at - 1];
      }
      distances[at] = distance;
      neighbours[at] = p;
    }
  }
}

int32_t geometry_knn(const shardrt_op_call *call) {
  knn_work work = {call, 0};
  if (!shardrt_op_integer(call, "k", &work.k) || work.k < 1)
    return call->fail(call, "k is to be at least 1");
  if (call->inputs[1].sizes[0] < work.k)
    return call->fail(call, "there are fewer points than neighbours are asked for");
  call->parallel_for(call, knn_of_queries, &work, call->inputs[0].sizes[0], 16);
  return 0;
}

/* What both functions of the backward get: the gradient of the distances, queries, points,
 * distances and neighbours. */
typedef struct knn_gradient {
  const double *grad, *query, *points, *distances;
  const int64_t *neighbours;
  int64_t count, k, dims;
} knn_gradient;

static knn_gradient knn_gradient_of(const shardrt_op_call *call) {
  const shardrt_op_tensor *in = call->inputs;
  knn_gradient g = {reals(&in[0]),    reals(&in[1]),  reals(&in[2]),  reals(&in[3]),
                    integers(&in[4]), in[0].sizes[0], in[0].sizes[1], in[1].sizes[1]};
  return g;
}

/* Along dim d, what neighbour j of query q adds to the cotangent of the query, and takes from that
 * of the neighbour. */
static double knn_share(const knn_gradient *g, int64_t q, int64_t j, int64_t d) {
  if (!(g->distances[j] > 0))
    return 0;
  double toward = g->query[q * g->dims + d] - g->points[g->neighbours[j] * g->dims + d];
  return g->grad[j] * toward / g->distances[j];
}

int32_t geometry_knn_backward_query(const shardrt_op_call *call) {
  knn_gradient g = knn_gradient_of(call);
  double *out = reals(&call->outputs[0]);
  for (int64_t q = 0; q < g.count; ++q)
    for (int64_t d = 0; d < g.dims; ++d) {
      double sum = 0;
      for (int64_t j = q * g.k; j < (q + 1) * g.k; ++j)
        sum += knn_share(&g, q, j, d);
      out[q * g.dims + d] = sum;
    }
  return 0;
}

/* Of the points each rank has what its queries make: the rule says that they are added up. */
int32_t geometry_knn_backward_points(const shardrt_op_call *call) {
  knn_gradient g = knn_gradient_of(call);
  double *out = reals(&call->outputs[0]);
  for (int64_t i = 0; i < call->outputs[0].sizes[0] * g.dims; ++i)
    out[i] = 0;
  for (int64_t q = 0; q < g.count; ++q)
    for (int64_t j = q * g.k; j < (q + 1) * g.k; ++j)
      for (int64_t d = 0; d < g.dims; ++d)
        out[g.neighbours[j] * g.dims + d] -= knn_share(&g, q, j, d);
  return 0;
}

/* geometry::ball_query(Tensor query, Tensor points, float radius, int most) -> Tensor
 *
 * The first points within the radius of each query, `most` at most; -1 where there are no more. */
int32_t geometry_ball_query(const shardrt_op_call *call) {
  const double *query = reals(&call->inputs[0]), *points = reals(&call->inputs[1]);
  int64_t dims = call->inputs[0].sizes[1], count = call->inputs[1].sizes[0],
          most = call->outputs[0].sizes[1];
  double radius = 0;
  if (!shardrt_op_real(call, "radius", &radius) || !(radius >= 0))
    return call->fail(call, "the radius is to be a number that is not negative");
  for (int64_t q = 0; q < call->inputs[0].sizes[0]; ++q) {
    int64_t found = 0, *out = integers(&call->outputs[0]) + q * most;
    for (int64_t p = 0; p < count && found < most; ++p)
      if (squared_distance(query + q * dims, points + p * dims, dims) <= radius * radius)
        out[found++] = p;
    while (found < most)
      out[found++] = -1;
  }
  return 0;
}

/* geometry::to_grid(Tensor values, Tensor cells, int size) -> Tensor
 *
 * Adds the values of the points up in the cells of a grid that they are in; (points, channels) ->
 * (size, channels). */
int32_t geometry_to_grid(const shardrt_op_call *call) {
  const double *values = reals(&call->inputs[0]);
  const int64_t *cells = integers(&call->inputs[1]);
  int64_t channels = call->inputs[0].sizes[1], size = call->outputs[0].sizes[0];
  double *grid = reals(&call->outputs[0]);
  for (int64_t i = 0; i < size * channels; ++i)
    grid[i] = 0;
  for (int64_t p = 0; p < call->inputs[0].sizes[0]; ++p) {
    if (cells[p] < 0 || cells[p] >= size)
      return call->fail(call, "a point is in no cell of the grid");
    for (int64_t c = 0; c < channels; ++c)
      grid[cells[p] * channels + c] += values[p * channels + c];
  }
  return 0;
}

/* geometry::from_grid(Tensor grid, Tensor cells) -> Tensor: what the cell of each point has. It is
 * the derivative of to_grid, and to_grid is its derivative. */
int32_t geometry_from_grid(const shardrt_op_call *call) {
  const double *grid = reals(&call->inputs[0]);
  const int64_t *cells = integers(&call->inputs[1]);
  int64_t channels = call->inputs[0].sizes[1], size = call->inputs[0].sizes[0];
  for (int64_t p = 0; p < call->inputs[1].sizes[0]; ++p) {
    if (cells[p] < 0 || cells[p] >= size)
      return call->fail(call, "a point is in no cell of the grid");
    for (int64_t c = 0; c < channels; ++c)
      reals(&call->outputs[0])[p * channels + c] = grid[cells[p] * channels + c];
  }
  return 0;
}

/* geometry::smooth(Tensor image, int reach) -> Tensor
 *
 * The mean of the rows up to `reach` away, (rows, columns), of an image whose rows are a circle. It
 * gets the rows that are needed beside its own, on both sides: the window of its rule says which.
 */
int32_t geometry_smooth(const shardrt_op_call *call) {
  const double *image = reals(&call->inputs[0]);
  int64_t reach = 0, rows = call->outputs[0].sizes[0], columns = call->outputs[0].sizes[1];
  if (!shardrt_op_integer(call, "reach", &reach))
    return call->fail(call, "reach is missing");
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (int64_t i = 0; i <= 2 * reach; ++i)
        sum += image[(row + i) * columns + column];
      reals(&call->outputs[0])[row * columns + column] = sum / (double)(2 * reach + 1);
    }
  return 0;
}
