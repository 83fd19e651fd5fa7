// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An artifact for the emulated device written by hand, as code generation would emit it, for WORLD
// ranks on a mesh tp = WORLD, or of the last rank alone with OUTSIDE. Kernels are LLVM IR as text,
// which the emulated device takes as well.
//
//   forward(x: f32[s0]): y = sum over ranks of (2 * x + rank) + total; total = sum of w over
//                        everything; calls += 1 (a mutable buffer). w: f32[8] is sharded.
//
// A negative element of x makes a kernel fail.
#include "runtime/abi/shardrt_program.h"

#include <stddef.h>

#define NUMBER_(x) #x
#define NUMBER(x) NUMBER_(x)

// The thread's number in %i, and a branch to %body or %exit.
#define ENTRY                                                                                      \
  "entry:\n"                                                                                       \
  "  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"                                             \
  "  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n"                                           \
  "  %d = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()\n"                                            \
  "  %m = mul i32 %b, %d\n"                                                                        \
  "  %s = add i32 %m, %t\n"                                                                        \
  "  %i = zext i32 %s to i64\n"                                                                    \
  "  %inside = icmp slt i64 %i, %n\n"                                                              \
  "  br i1 %inside, label %body, label %exit\n"                                                    \
  "body:\n"                                                                                        \
  "  %at = getelementptr float, ptr %in, i64 %i\n"                                                 \
  "  %to = getelementptr float, ptr %out, i64 %i\n"                                                \
  "  %v = load float, ptr %at, align 4\n"

static const char code[] =
    "target triple = \"nvptx64-nvidia-cuda\"\n"
    "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
    "declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()\n"
    "declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n"
    "define ptx_kernel void @twice(ptr %word, i32 %launch, ptr %out, ptr %in, i64 %n) {\n" ENTRY
    "  %bad = fcmp olt float %v, 0.0\n"
    "  br i1 %bad, label %fail, label %good\n"
    "fail:\n"
    "  %next = add i32 %launch, 1\n"
    "  %wide = zext i32 %next to i64\n"
    "  %high = shl i64 %wide, 32\n"
    "  %what = or i64 %high, 1\n"
    "  %old = cmpxchg ptr %word, i64 0, i64 %what monotonic monotonic\n"
    "  br label %good\n"
    "good:\n"
    "  %r = fmul float %v, 2.0\n"
    "  store float %r, ptr %to, align 4\n"
    "  br label %exit\n"
    "exit:\n"
    "  ret void\n"
    "}\n"
    "define ptx_kernel void @add(ptr %word, i32 %launch, ptr %out, ptr %in, i64 %n, float %a) "
    "{\n" ENTRY "  %r = fadd float %v, %a\n"
    "  store float %r, ptr %to, align 4\n"
    "  br label %exit\n"
    "exit:\n"
    "  ret void\n"
    "}\n"
    "define ptx_kernel void @add_scalar(ptr %word, i32 %launch, ptr %out, ptr %in, i64 %n,"
    " ptr %scalar) {\n" ENTRY "  %a = load float, ptr %scalar, align 4\n"
    "  %r = fadd float %v, %a\n"
    "  store float %r, ptr %to, align 4\n"
    "  br label %exit\n"
    "exit:\n"
    "  ret void\n"
    "}\n"
    "define ptx_kernel void @sum(ptr %word, i32 %launch, ptr %out, ptr %in, i64 %n) {\n"
    "entry:\n"
    "  br label %loop\n"
    "loop:\n"
    "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]\n"
    "  %acc = phi float [ 0.0, %entry ], [ %r, %loop ]\n"
    "  %at = getelementptr float, ptr %in, i64 %i\n"
    "  %v = load float, ptr %at, align 4\n"
    "  %r = fadd float %acc, %v\n"
    "  %next = add i64 %i, 1\n"
    "  %more = icmp slt i64 %next, %n\n"
    "  br i1 %more, label %loop, label %exit\n"
    "exit:\n"
    "  store float %r, ptr %out, align 4\n"
    "  ret void\n"
    "}\n"
    "define ptx_kernel void @count(ptr %word, i32 %launch, ptr %out, ptr %in) {\n"
    "  %v = load i64, ptr %in, align 8\n"
    "  %r = add i64 %v, 1\n"
    "  store i64 %r, ptr %out, align 8\n"
    "  ret void\n"
    "}\n";

// With CHIP it is a program for a chip, though without code for it: for what is found out before.
#ifdef CHIP
#define TARGET "\"chips\": [\"sm_" NUMBER(CHIP) "\"]"
static const shardrt_device_image image = {code, sizeof code, SHARDRT_IMAGE_CUBIN, CHIP};
#else
#define TARGET "\"chips\": [], \"emulated\": true"
static const shardrt_device_image image = {code, sizeof code, SHARDRT_IMAGE_BITCODE, 0};
#endif
static const char *const twice_messages[] = {"unused", "index is out of range"};
enum { TWICE, ADD, SUM, ADD_SCALAR, COUNT, N_KERNELS };
static const shardrt_kernel kernels[] = {{"twice", twice_messages, 2, 3, {32, 1, 1}, 0},
                                         {"add", NULL, 0, 4, {32, 1, 1}, 0},
                                         {"sum", NULL, 0, 3, {1, 1, 1}, 0},
                                         {"add_scalar", NULL, 0, 4, {32, 1, 1}, 0},
                                         {"count", NULL, 0, 2, {1, 1, 1}, 0}};

#ifdef OUTSIDE
#define MESH 1
#define DEVICES ", \"devices\": [1]"
static const uint32_t ranks[] = {1}, variants[] = {SHARDRT_NO_VARIANT, 0};
#else
#define MESH WORLD
#define DEVICES
static const uint32_t ranks[] = {0, 1, 2, 3}, variants[] = {0, 0, 0, 0};
#endif
static const uint32_t set_begin[] = {0, MESH};
static const shardrt_group group = {"tp", set_begin, ranks, 1, 0};
static const shardrt_collective_operand vector = {SHARDRT_F32, 1, -1, -1};
static const shardrt_collective_operand scalar = {SHARDRT_F32, 0, -1, -1};
static const shardrt_collective collectives[] = {{.name = "all_reduce.0",
                                                  .location = "y (model.py:5)",
                                                  .operands = &vector,
                                                  .kind = SHARDRT_ALL_REDUCE,
                                                  .reduction = SHARDRT_SUM,
                                                  .n_operands = 1},
                                                 {.name = "all_reduce.1",
                                                  .location = "total (model.py:6)",
                                                  .operands = &scalar,
                                                  .kind = SHARDRT_ALL_REDUCE,
                                                  .reduction = SHARDRT_SUM,
                                                  .n_operands = 1}};
static const shardrt_op ops[] = {{"twice", "embed (model.py:3)"}, {"sum", "total (model.py:6)"}};

static int32_t launch(shardrt_frame *f, uint32_t kernel, const char *location, uint32_t blocks,
                      const void *const *params) {
  shardrt_launch one = {location, params, kernel, {blocks, 1, 1}};
  return f->services->launch(f->runtime, &one);
}

static int32_t plan(shardrt_frame *f) {
  f->offsets[0] = (f->symbols[0] * 4 + 63) / 64 * 64; // of the reduced vector
  f->offsets[1] = 2 * f->offsets[0];                  // of the local and the global total
  f->arena_bytes = (uint64_t)f->offsets[1] + 128;
  return 0;
}

static int32_t forward(shardrt_frame *f) {
  const shardrt_services *s = f->services;
  int64_t n = f->symbols[0], part = 8 / MESH, one = 1, none = 0;
  uint32_t blocks = (uint32_t)((n + 31) / 32);
  uint8_t *mine = f->arena, *reduced = f->arena + f->offsets[0];
  uint8_t *local = f->arena + f->offsets[1], *total = local + 64;
  float rank = (float)f->rank, zero = 0;
  s->mark(f->runtime, 0);
  void *doubled = s->scratch(f->runtime, 0, (uint64_t)n * 4);
  if (!doubled)
    return 0;
  launch(f, TWICE, "embed (model.py:3)", blocks, (const void *[]){&doubled, &f->inputs[0], &n});
  launch(f, ADD, "embed (model.py:4)", blocks, (const void *[]){&mine, &doubled, &n, &rank});
  shardrt_collective_tensor y = {mine, reduced, &n, NULL, NULL};
  uint64_t token = s->start(f->runtime, &collectives[0], &y);
  s->mark(f->runtime, 1);
  launch(f, SUM, "total (model.py:6)", 1, (const void *[]){&local, &f->parameters[0], &part});
  shardrt_collective_tensor t = {local, total, &none, NULL, NULL};
  int32_t status = s->collective(f->runtime, &collectives[1], &t);
  if (status)
    return status;
  launch(f, COUNT, "", 1, (const void *[]){&f->outputs[2], &f->parameters[1]});
  status = s->wait(f->runtime, token);
  if (status)
    return status;
  launch(f, ADD_SCALAR, "y (model.py:7)", blocks,
         (const void *[]){&f->outputs[0], &reduced, &n, &total});
  return launch(f, ADD, "total (model.py:6)", 1,
                (const void *[]){&f->outputs[1], &total, &one, &zero});
}

static const shardrt_variant variant = {forward, plan, NULL, 0, 0, 2};
static const shardrt_entry entry = {"forward", &variant, variants, ops, 1, 2, NULL, 0};
static const shardrt_program program = {sizeof(shardrt_program),
                                        &entry,
                                        &group,
                                        NULL,
                                        collectives,
                                        1,
                                        1,
                                        0,
                                        2,
                                        &image,
                                        kernels,
                                        1,
                                        N_KERNELS};

static const char json[] =
    "{\"format\": 1, \"tool\": \"by hand\", \"name\": \"device\", \"artifact_hash\": \"d" NUMBER(
        WORLD) "\","
               " \"sequence_hash\": \"q1\", \"world_size\": " NUMBER(
                   WORLD) ","
                          " \"target\": {\"kind\": \"cuda\", \"triple\": \"" ARCHITECTURE
                          "-linux-gnu\","
                          "  \"cpu\": \"generic\", \"features\": [], " TARGET "},"
                          " \"mesh\": {\"name\": \"mesh\", \"axes\": [{\"name\": \"tp\", "
                          "\"size\": " NUMBER(
                              MESH) "}]" DEVICES "},"
                                    " \"symbols\": [{\"name\": \"s0\", \"min\": 1, \"max\": "
                                    "100000}],"
                                    " \"parameters\": ["
                                    "  {\"names\": [\"w\"], \"type\": \"f32\", \"shape\": [8], "
                                    "\"layout\": \"[S(0)]\"},"
                                    "  {\"names\": [\"calls\"], \"type\": \"i64\", \"shape\": [], "
                                    "\"layout\": \"[R]\","
                                    "   \"mutable\": true}],"
                                    " \"entries\": [{\"name\": \"forward\", \"arena_bytes\": [0],"
                                    "  \"inputs\": [{\"name\": \"x\", \"type\": \"f32\", "
                                    "\"shape\": [\"s0\"], \"layout\": \"[R]\"}],"
                                    "  \"outputs\": [{\"name\": \"y\", \"type\": \"f32\", "
                                    "\"shape\": [\"s0\"], \"layout\": \"[R]\","
                                    "    \"kind\": \"user\"},"
                                    "   {\"name\": \"total\", \"type\": \"f32\", \"shape\": [], "
                                    "\"layout\": \"[R]\","
                                    "    \"kind\": \"user\"},"
                                    "   {\"name\": \"calls\", \"type\": \"i64\", \"shape\": [], "
                                    "\"layout\": \"[R]\","
                                    "    \"kind\": \"state\", \"updates\": \"calls\"}]}]}";

static const shardrt_manifest manifest = {SHARDRT_PROGRAM_ABI, sizeof(shardrt_manifest), json,
                                          sizeof json - 1, &program};

__attribute__((visibility("default"))) const shardrt_manifest *shardrt_query(void) {
  return &manifest;
}
