// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An artifact written by hand, as code generation would emit it, on a mesh dp=2, tp=2:
//
//   forward(x: f32[s0, 6]): y = x @ w + b, gathered over tp; total = sum of y over everything;
//                           calls += 1 (a mutable buffer). s0 is dynamic, w has 9 columns: tp 5
//                           + 4.
//   columns():              column sums of w, packed once when parameters are loaded.
//   lookup(ids: i64[4]):    fails on an id that is negative, as an embedding would.  The sum of
//                           all ids over dp.
//   slow(rank: i64[1]):     that rank sleeps for 2.5 s before a collective.
//
//   step(ids: i64[4]):      checks ids as lookup does; then calls += those of its shard, in place;
//                           then an id of 1000 is bad; then the sum of all ids over dp.
//
// With FORGETFUL, forward sums onto what is in the arena, and lookup does not write its result.
#include "runtime/abi/shardrt_program.h"

#include <string.h>
#include <time.h>

#define COLUMNS 9
#define DEPTH 6

// Groups of the two axes, over ranks in row-major order of (dp, tp).
static const uint32_t pairs_begin[] = {0, 2, 4};
static const uint32_t dp_ranks[] = {0, 2, 1, 3}, tp_ranks[] = {0, 1, 2, 3};
static const shardrt_group groups[] = {{"dp", pairs_begin, dp_ranks, 2, 0},
                                       {"tp", pairs_begin, tp_ranks, 2, 0}};
enum { DP, TP };

static const shardrt_collective_operand gather_operand = {SHARDRT_F32, 2, 1, -1};
static const shardrt_collective_operand reduce_operand = {SHARDRT_F32, 0, -1, -1};
static const shardrt_collective collectives[] = {
    {.name = "all_gather.0",
     .location = "fc (model.py:7)",
     .operands = &gather_operand,
     .kind = SHARDRT_ALL_GATHER,
     .group = TP,
     .n_operands = 1},
    {.name = "all_reduce.1",
     .location = "total (model.py:8)",
     .operands = &reduce_operand,
     .kind = SHARDRT_ALL_REDUCE,
     .reduction = SHARDRT_SUM,
     .group = DP,
     .n_operands = 1},
};

static const shardrt_op ops[] = {{"linear", "fc (model.py:7)"}, {"sum", "total (model.py:8)"}};

// ---- forward ----

enum { W, B, CALLS };                     // parameters
enum { Y, TOTAL, CALLS_NEXT };            // outputs
enum { LOCAL_Y, PARTIAL_SUM, N_OFFSETS }; // arena offsets

static int64_t chunk(int64_t full, int64_t index) {
  int64_t half = (full + 1) / 2, begin = index * half < full ? index * half : full;
  int64_t end = begin + half < full ? begin + half : full;
  return end - begin;
}
static int64_t local_rows(const shardrt_frame *f) {
  return chunk(f->symbols[0], f->coordinates[0]);
}

static int32_t forward_plan(shardrt_frame *f, int64_t columns) {
  f->offsets[LOCAL_Y] = 0;
  f->offsets[PARTIAL_SUM] = (local_rows(f) * columns * 4 + 63) / 64 * 64;
  f->arena_bytes = (uint64_t)f->offsets[PARTIAL_SUM] + 4;
  return 0;
}

struct row_sums {
  const shardrt_frame *frame;
  const float *y;
  float *sums;
};
// A row at a time through memory of the thread, which another thread's row must not touch.
static void sum_rows(void *arg, int64_t begin, int64_t end) {
  struct row_sums *s = arg;
  float *row = s->frame->services->scratch(s->frame->runtime, 1, COLUMNS * 4);
  if (!row)
    return;
  for (int64_t i = begin; i < end; ++i) {
    memcpy(row, s->y + i * COLUMNS, COLUMNS * 4);
    s->sums[i] = 0;
    for (int64_t j = 0; j < COLUMNS; ++j)
      s->sums[i] += row[j];
  }
}

static int32_t forward(shardrt_frame *f, int64_t columns) {
  const shardrt_services *s = f->services;
  int64_t rows = local_rows(f);
  float *local = (float *)(f->arena + f->offsets[LOCAL_Y]);
  float *partial = (float *)(f->arena + f->offsets[PARTIAL_SUM]);
  // Outputs are the program's from the start, whatever the caller's tensors share.
  memset(f->outputs[Y], 0xff, (size_t)(rows * COLUMNS * 4));
  s->mark(f->runtime, 0);
  shardrt_gemm gemm = {.a = f->inputs[0],
                       .b = f->parameters[W],
                       .c = local,
                       .bias = f->parameters[B],
                       .m = rows,
                       .n = columns,
                       .k = DEPTH,
                       .lda = DEPTH,
                       .ldb = columns,
                       .ldc = columns,
                       .batch = 1,
                       .alpha = 1,
                       .type = SHARDRT_F32};
  int32_t status = s->gemm(f->runtime, &gemm);
  if (status)
    return status;
  uint64_t token;
  {
    int64_t extents[] = {rows, COLUMNS}; // gone when start has returned
    shardrt_collective_tensor y = {local, f->outputs[Y], extents, NULL, NULL};
    token = s->start(f->runtime, &collectives[0], &y);
    extents[0] = extents[1] = -1;
  }
  status = s->wait(f->runtime, token);
  if (status)
    return status;
  status = s->commit(f->runtime);
  if (status)
    return status;
  const int64_t *calls = f->parameters[CALLS];
  *(int64_t *)f->outputs[CALLS_NEXT] = *calls + 1;
  s->mark(f->runtime, 1);
  float *sums = s->scratch(f->runtime, 0, (uint64_t)rows * 4);
  if (!sums)
    return 0; // recorded: it makes the run fail, whatever is returned
  struct row_sums arg = {f, f->outputs[Y], sums};
  s->parallel_for(f->runtime, sum_rows, &arg, rows, 1);
#ifndef FORGETFUL
  *partial = 0;
#endif
  for (int64_t i = 0; i < rows; ++i)
    *partial += sums[i];
  int64_t none = 0;
  shardrt_collective_tensor total = {partial, f->outputs[TOTAL], &none, NULL, NULL};
  return s->collective(f->runtime, &collectives[1], &total);
}

static int32_t forward_plan_5(shardrt_frame *f) { return forward_plan(f, 5); }
static int32_t forward_plan_4(shardrt_frame *f) { return forward_plan(f, 4); }
static int32_t forward_5(shardrt_frame *f) { return forward(f, 5); }
static int32_t forward_4(shardrt_frame *f) { return forward(f, 4); }

// ---- columns ----

static int32_t pack(shardrt_frame *f, int64_t columns) {
  const float *w = f->parameters[W];
  float *sums = (float *)f->persistent;
  memset(sums, 0, (size_t)columns * 4);
  for (int64_t k = 0; k < DEPTH; ++k)
    for (int64_t j = 0; j < columns; ++j)
      sums[j] += w[k * columns + j];
  return 0;
}
static int32_t pack_5(shardrt_frame *f) { return pack(f, 5); }
static int32_t pack_4(shardrt_frame *f) { return pack(f, 4); }
static int32_t columns_5(shardrt_frame *f) {
  memcpy(f->outputs[0], f->persistent, 5 * 4);
  return 0;
}
static int32_t columns_4(shardrt_frame *f) {
  memcpy(f->outputs[0], f->persistent, 4 * 4);
  return 0;
}

// ---- lookup, slow ----

static int32_t reduce_one(shardrt_frame *f, float value, float *out) {
  int64_t none = 0;
  shardrt_collective_tensor total = {&value, out, &none, NULL, NULL};
  return f->services->collective(f->runtime, &collectives[1], &total);
}

// Two ways to fail: a kernel records a negative id and the program goes on; -2 ends it at once.
static void check_ids(void *arg, int64_t begin, int64_t end) {
  const shardrt_frame *f = arg;
  const int64_t *ids = f->inputs[0];
  for (int64_t i = begin; i < end; ++i)
    if (ids[i] < 0)
      f->services->fail(f->runtime, "embeddings (model.py:3)", "index -1 is out of range");
}

static int32_t lookup(shardrt_frame *f) {
  const int64_t *ids = f->inputs[0];
  if (ids[0] == -2 || ids[1] == -2)
    return f->services->fail(f->runtime, "embeddings (model.py:3)", "index -2 is out of range");
  f->services->parallel_for(f->runtime, check_ids, f, 2, 1);
#ifdef FORGETFUL
  return 0;
#endif
  float sum = (float)(ids[0] + ids[1]);
  int64_t none = 0;
  shardrt_collective_tensor total = {&sum, f->outputs[0], &none, NULL, NULL};
  // Started and waited for, or in one.
  if (ids[0] < ids[1])
    return f->services->collective(f->runtime, &collectives[1], &total);
  uint64_t token = f->services->start(f->runtime, &collectives[1], &total);
  struct timespec time_to_send = {0, 50000000};
  nanosleep(&time_to_send, NULL);
  return f->services->wait(f->runtime, token);
}

static int32_t step(shardrt_frame *f) {
  const shardrt_services *s = f->services;
  const int64_t *ids = f->inputs[0];
  s->parallel_for(f->runtime, check_ids, f, 2, 1);
  int32_t status = s->commit(f->runtime);
  if (status)
    return status;
  int64_t *calls = f->outputs[1];
  *calls += ids[0] + ids[1];
  for (int i = 0; i < 2; ++i)
    if (ids[i] == 1000)
      s->fail(f->runtime, "head (model.py:9)", "index 1000 is out of range");
  return reduce_one(f, (float)(ids[0] + ids[1]), f->outputs[0]);
}

/// The input is rank + 10 * milliseconds of its sleep + 10^9 * steps before it (Artifact.h).
static int32_t slow(shardrt_frame *f) {
  static int64_t steps[4];
  f->services->mark(f->runtime, 0);
  int64_t input = *(const int64_t *)f->inputs[0], time = input / 10 % 100000000;
  if (input % 10 == f->rank && steps[f->rank]++ >= input / 1000000000) {
    struct timespec sleep = {time / 1000, time % 1000 * 1000000};
    nanosleep(&sleep, NULL);
  }
  return reduce_one(f, 1, f->outputs[0]);
}

// ---- tables ----

static const uint32_t by_tp[] = {0, 1, 0, 1}, only[] = {0, 0, 0, 0};
static const shardrt_variant forward_variants[] = {
    {forward_5, forward_plan_5, NULL, 0, 0, N_OFFSETS},
    {forward_4, forward_plan_4, NULL, 0, 0, N_OFFSETS}};
static const shardrt_variant columns_variants[] = {{columns_5, NULL, pack_5, 0, 20, 0},
                                                   {columns_4, NULL, pack_4, 0, 16, 0}};
static const shardrt_variant lookup_variant = {lookup, NULL, NULL, 0, 0, 0};
static const shardrt_variant step_variant = {step, NULL, NULL, 0, 0, 0};
static const shardrt_variant slow_variant = {slow, NULL, NULL, 0, 0, 0};
static const shardrt_span expected[] = {{"product", "mlp (mlp.py:3)", 0, 40, 0, 0},
                                        {"reduce", "mlp (mlp.py:4)", 40, 25, 1, 0},
                                        {"wait for reduce", "", 41, 24, 2, 0}};
static const shardrt_entry entries[] = {
    {"forward", forward_variants, by_tp, ops, 2, 2, expected, 3},
    {"columns", columns_variants, by_tp, NULL, 2, 0, NULL, 0},
    {"lookup", &lookup_variant, only, NULL, 1, 0, NULL, 0},
    {"slow", &slow_variant, only, ops, 1, 2, NULL, 0},
    {"step", &step_variant, only, NULL, 1, 0, NULL, 0}};
static const float bias[COLUMNS] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
static const int64_t bias_extents[] = {COLUMNS};
static const shardrt_constant constants[] = {
    {"bias", bias, bias_extents, sizeof bias, SHARDRT_F32, 1}};
static const shardrt_program program = {
    sizeof(shardrt_program), entries, groups, constants, collectives, 5, 2, 1, 2};

static const char json[] =
    "{\"format\": 1, \"tool\": \"by hand\", \"name\": \"hand\", \"artifact_hash\": \"h1\","
    " \"sequence_hash\": \"q1\", \"world_size\": 4, \"libraries\": [\"blas\"],"
    " \"target\": {\"kind\": \"cpu\", \"triple\": \"" ARCHITECTURE "-linux-gnu\","
    "  \"cpu\": \"generic\", \"features\": []},"
    " \"mesh\": {\"name\": \"mesh\","
    "  \"axes\": [{\"name\": \"dp\", \"size\": 2}, {\"name\": \"tp\", \"size\": 2}]},"
    " \"symbols\": [{\"name\": \"s0\", \"min\": 1, \"max\": 64}],"
    " \"constraints\": [{\"left\": \"s0\", \"relation\": \"!=\", \"right\": 13}],"
    " \"ignored_parameters\": [\"unused.*\"],"
    " \"parameters\": ["
    "  {\"names\": [\"fc.weight\", \"fc.tied\"], \"type\": \"f32\", \"shape\": [6, 9],"
    "   \"layout\": \"[R, S(1)]\"},"
    "  {\"names\": [\"bias\"], \"type\": \"f32\", \"shape\": [9], \"layout\": \"[R, S(0)]\","
    "   \"source\": \"constant\"},"
    "  {\"names\": [\"calls\"], \"type\": \"i64\", \"shape\": [], \"layout\": \"[R, R]\","
    "   \"mutable\": true}],"
    " \"entries\": ["
    "  {\"name\": \"forward\", \"arena_bytes\": [0, 0],"
    "   \"inputs\": [{\"name\": \"x\", \"type\": \"f32\", \"shape\": [\"s0\", 6],"
    "    \"layout\": \"[S(0), R]\"}],"
    "   \"outputs\": [{\"name\": \"y\", \"type\": \"f32\", \"shape\": [\"s0\", 9],"
    "     \"layout\": \"[S(0), R]\", \"kind\": \"user\"},"
    "    {\"name\": \"total\", \"type\": \"f32\", \"shape\": [], \"layout\": \"[R, R]\","
    "     \"kind\": \"user\"},"
    "    {\"name\": \"calls\", \"type\": \"i64\", \"shape\": [], \"layout\": \"[R, R]\","
    "     \"kind\": \"state\", \"updates\": \"calls\"}]},"
    "  {\"name\": \"columns\", \"inputs\": [], \"arena_bytes\": [0, 0],"
    "   \"outputs\": [{\"name\": \"sums\", \"type\": \"f32\", \"shape\": [9],"
    "    \"layout\": \"[R, S(0)]\", \"kind\": \"user\"}]},"
    "  {\"name\": \"lookup\", \"arena_bytes\": [0],"
    "   \"inputs\": [{\"name\": \"ids\", \"type\": \"i64\", \"shape\": [4],"
    "    \"layout\": \"[S(0), R]\"}],"
    "   \"outputs\": [{\"name\": \"sum\", \"type\": \"f32\", \"shape\": [], \"layout\": \"[R, R]\","
    "    \"kind\": \"user\"}]},"
    "  {\"name\": \"slow\", \"arena_bytes\": [0],"
    "   \"inputs\": [{\"name\": \"rank\", \"type\": \"i64\", \"shape\": [1], \"layout\": \"[R, "
    "R]\"}],"
    "   \"outputs\": [{\"name\": \"count\", \"type\": \"f32\", \"shape\": [], \"layout\": \"[R, "
    "R]\","
    "    \"kind\": \"user\"}]},"
    "  {\"name\": \"step\", \"arena_bytes\": [0],"
    "   \"inputs\": [{\"name\": \"ids\", \"type\": \"i64\", \"shape\": [4],"
    "    \"layout\": \"[S(0), R]\"}],"
    "   \"outputs\": [{\"name\": \"sum\", \"type\": \"f32\", \"shape\": [], \"layout\": \"[R, R]\","
    "     \"kind\": \"user\"},"
    "    {\"name\": \"calls\", \"type\": \"i64\", \"shape\": [], \"layout\": \"[R, R]\","
    "     \"kind\": \"state\", \"updates\": \"calls\"}]}]}";

static const shardrt_manifest manifest = {SHARDRT_PROGRAM_ABI, sizeof(shardrt_manifest), json,
                                          sizeof json - 1, &program};

__attribute__((visibility("default"))) const shardrt_manifest *shardrt_query(void) {
  return &manifest;
}
