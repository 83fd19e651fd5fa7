// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program for the fake device, as code generation would emit it, on a mesh tp = N:
//
//   forward(x: f32[s0]): y = sum over ranks of (2 * x + rank) + total; total = sum of w over
//                        everything; calls += 1 (a mutable buffer). w: f32[8] is sharded.
//
// A negative element of x makes a kernel fail.
#ifndef SHARDC_TEST_UNIT_RUNTIME_DEVICE_FAKEPROGRAM_H
#define SHARDC_TEST_UNIT_RUNTIME_DEVICE_FAKEPROGRAM_H

#include "runtime/device/DeviceExecutor.h"
#include "runtime/host/CpuFeatures.h"
#include "runtime/model/Model.h"
#include "test/unit/runtime/device/FakeTable.h"

#include <gtest/gtest.h>

namespace test {

namespace fake {

inline void fail(uint64_t *word, uint32_t launch, uint32_t message) {
  if (*word == 0)
    *word = uint64_t(launch + 1) << 32 | message;
}
template <typename T> T *at(uint64_t param) { return reinterpret_cast<T *>(param); }

// out, in, n
inline void twice(uint64_t *word, uint32_t launch, const uint64_t *p) {
  for (uint64_t i = 0; i < p[2]; ++i) {
    if (at<float>(p[1])[i] < 0)
      fail(word, launch, 1);
    else
      at<float>(p[0])[i] = 2 * at<float>(p[1])[i];
  }
}
// out, in, n, added
inline void add(uint64_t *, uint32_t, const uint64_t *p) {
  for (uint64_t i = 0; i < p[2]; ++i)
    at<float>(p[0])[i] = at<float>(p[1])[i] + float(p[3]);
}
// out, in, n
inline void sum(uint64_t *, uint32_t, const uint64_t *p) {
  *at<float>(p[0]) = 0;
  for (uint64_t i = 0; i < p[2]; ++i)
    *at<float>(p[0]) += at<float>(p[1])[i];
}
// out, in, n, scalar
inline void addScalar(uint64_t *, uint32_t, const uint64_t *p) {
  for (uint64_t i = 0; i < p[2]; ++i)
    at<float>(p[0])[i] = at<float>(p[1])[i] + *at<float>(p[3]);
}
// out, in
inline void count(uint64_t *, uint32_t, const uint64_t *p) {
  *at<int64_t>(p[0]) = *at<int64_t>(p[1]) + 1;
}

inline const FakeKernel code[] = {{"twice", twice},          {"add", add},     {"sum", sum},
                                  {"add_scalar", addScalar}, {"count", count}, {nullptr, nullptr}};
enum Kernel : uint32_t { Twice, Add, Sum, AddScalar, Count };
inline const char *const twiceMessages[] = {"unused", "index is out of range"};
// The fake device learns by shared_bytes how many parameters there are.
inline const shardrt_kernel kernels[] = {{"twice", twiceMessages, 2, 3, {32, 1, 1}, 3},
                                         {"add", nullptr, 0, 4, {32, 1, 1}, 4},
                                         {"sum", nullptr, 0, 3, {32, 1, 1}, 3},
                                         {"add_scalar", nullptr, 0, 4, {32, 1, 1}, 4},
                                         {"count", nullptr, 0, 2, {32, 1, 1}, 2}};
inline const shardrt_device_image image{code, sizeof code, SHARDRT_IMAGE_CUBIN, 80};

inline const shardrt_collective_operand vectorOperand{SHARDRT_F32, 1, -1, -1},
    scalarOperand{SHARDRT_F32, 0, -1, -1};
inline const shardrt_collective collectives[] = {
    {"all_reduce.0", "y (model.py:5)", &vectorOperand, nullptr, SHARDRT_ALL_REDUCE, SHARDRT_SUM, 0,
     1, 0, 0, 0},
    {"all_reduce.1", "total (model.py:6)", &scalarOperand, nullptr, SHARDRT_ALL_REDUCE, SHARDRT_SUM,
     0, 1, 0, 0, 0}};
inline const shardrt_op ops[] = {{"twice", "embed (model.py:3)"}, {"sum", "total (model.py:6)"}};

template <typename... Params>
void launch(shardrt_frame *f, Kernel kernel, const char *location, Params... params) {
  const uint64_t values[] = {(uint64_t)params...};
  const void *addresses[8];
  for (size_t i = 0; i < sizeof...(params); ++i)
    addresses[i] = &values[i];
  shardrt_launch one{location, addresses, kernel, {1, 1, 1}};
  f->services->launch(f->runtime, &one);
}

inline int32_t plan(shardrt_frame *f) {
  f->offsets[0] = (f->symbols[0] * 4 + 63) / 64 * 64; // of the reduced vector
  f->offsets[1] = 2 * f->offsets[0];                  // of the local and the global total
  f->arena_bytes = uint64_t(f->offsets[1]) + 128;
  return 0;
}

/// How often it computes the local total.
inline int repetitions = 1;
/// How many products of one element it computes besides.
inline int products = 0;
/// How many collectives of its own total it does besides, one after the other, and how many it
/// starts and waits for in the end.
inline int exchanges = 0, starts = 0;
/// How many times as much memory it asks for as it needs for temporaries.
inline uint64_t scratchFactor = 1;

inline int32_t forward(shardrt_frame *f) {
  const shardrt_services *s = f->services;
  const int64_t n = f->symbols[0];
  uint8_t *mine = f->arena, *reduced = f->arena + f->offsets[0];
  uint8_t *local = f->arena + f->offsets[1], *total = local + 64;
  s->mark(f->runtime, 0);
  void *doubled = s->scratch(f->runtime, 0, scratchFactor * uint64_t(n) * 4);
  if (!doubled)
    return 0;
  launch(f, Twice, "embed (model.py:3)", doubled, f->inputs[0], n);
  launch(f, Add, "embed (model.py:4)", mine, doubled, n, f->rank);
  shardrt_collective_tensor y{mine, reduced, &n, nullptr, nullptr};
  uint64_t token = s->start(f->runtime, &collectives[0], &y);
  s->mark(f->runtime, 1);
  for (int i = 0; i < repetitions; ++i)
    launch(f, Sum, "total (model.py:6)", local, f->parameters[0], 8 / f->world);
  shardrt_gemm one{};
  one.a = one.b = one.c = local;
  one.m = one.n = one.k = one.lda = one.ldb = one.ldc = one.batch = 1;
  one.alpha = 1;
  one.type = SHARDRT_F32;
  one.c = local + 32; // nobody reads it
  for (int i = 0; i < products; ++i)
    s->gemm(f->runtime, &one);
  int64_t none = 0;
  shardrt_collective_tensor t{local, total, &none, nullptr, nullptr};
  if (int32_t status = s->collective(f->runtime, &collectives[1], &t))
    return status;
  shardrt_collective_tensor unused{local, total + 16, &none, nullptr, nullptr};
  for (int i = 0; i < exchanges; ++i)
    s->collective(f->runtime, &collectives[1], &unused);
  std::vector<uint64_t> started;
  for (int i = 0; i < starts; ++i)
    started.push_back(s->start(f->runtime, &collectives[1], &unused));
  for (uint64_t one : started)
    s->wait(f->runtime, one);
  if (int32_t status = s->commit(f->runtime))
    return status;
  launch(f, Count, "", f->outputs[2], f->parameters[1]);
  if (int32_t status = s->wait(f->runtime, token))
    return status;
  s->scratch(f->runtime, 0, scratchFactor * uint64_t(n) * 8); // ends the use of what it gave before
  launch(f, AddScalar, "y (model.py:7)", f->outputs[0], reduced, n, total);
  launch(f, Add, "total (model.py:6)", f->outputs[1], total, 1, 0);
  return 0;
}

} // namespace fake

/// The artifact, for a world of so many ranks.
struct FakeArtifact {
  explicit FakeArtifact(int32_t world)
      : setBegin{0, uint32_t(world)}, variants{{fake::forward, fake::plan, nullptr, 0, 0, 2}},
        variantOfRank(size_t(world), 0) {
    for (int32_t r = 0; r < world; ++r)
      ranks.push_back(uint32_t(r));
    group = {"tp", setBegin, ranks.data(), 1, 0};
    entry = {"forward", variants, variantOfRank.data(), fake::ops, 1, 2, nullptr, 0};
    program = {sizeof program,
               &entry,
               &group,
               nullptr,
               fake::collectives,
               1,
               1,
               0,
               2,
               &fake::image,
               fake::kernels,
               1,
               std::size(fake::kernels)};
    json = R"({"format": 1, "tool": "by hand", "name": "fake", "artifact_hash": "h",
  "sequence_hash": "q", "target": {"kind": "cuda", "triple": ")" +
           std::string(shardc::rt::hostArchitecture()) + R"(-linux-gnu", "cpu": "generic",
  "features": [], "chips": ["sm_80"]}, "world_size": )" +
           std::to_string(world) + R"(,
  "mesh": {"name": "mesh", "axes": [{"name": "tp", "size": )" +
           std::to_string(world) + R"(}]},
  "symbols": [{"name": "s0", "min": 1, "max": 100000}],
  "parameters": [
    {"names": ["w"], "type": "f32", "shape": [8], "layout": "[S(0)]"},
    {"names": ["calls"], "type": "i64", "shape": [], "layout": "[R]", "mutable": true}],
  "entries": [{"name": "forward", "arena_bytes": [0],
    "inputs": [{"name": "x", "type": "f32", "shape": ["s0"], "layout": "[R]"}],
    "outputs": [
      {"name": "y", "type": "f32", "shape": ["s0"], "layout": "[R]", "kind": "user"},
      {"name": "total", "type": "f32", "shape": [], "layout": "[R]", "kind": "user"},
      {"name": "calls", "type": "i64", "shape": [], "layout": "[R]", "kind": "state",
       "updates": "calls"}]}]})";
    manifest = {SHARDRT_PROGRAM_ABI, sizeof manifest, json.data(), json.size(), &program};
  }
  FakeArtifact(const FakeArtifact &) = delete;

  /// w is 0, 1, ..., 7; calls begins with 41.
  static int32_t parameter(void *, const char *name, shardrt_tensor *tensor) {
    static const float w[] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const int64_t calls = 41, extents[] = {8};
    const bool isW = std::strcmp(name, "w") == 0;
    tensor->data =
        isW ? static_cast<void *>(const_cast<float *>(w)) : const_cast<int64_t *>(&calls);
    tensor->type = isW ? SHARDRT_F32 : SHARDRT_I64;
    tensor->rank = isW ? 1 : 0;
    tensor->extents = extents;
    tensor->scope = SHARDRT_GLOBAL;
    return 0;
  }
  static float expected(float x, int32_t world) {
    return 2 * x * float(world) + float(world * (world - 1) / 2) + 28;
  }

  const uint32_t setBegin[2];
  std::vector<uint32_t> ranks;
  shardrt_group group{};
  const shardrt_variant variants[1];
  std::vector<uint32_t> variantOfRank;
  shardrt_entry entry{};
  shardrt_program program{};
  std::string json;
  shardrt_manifest manifest{};
};

/// The kind of executor that manifests for "cuda" get here.
inline shardc::rt::ExecutorRegistry fakeRegistry() {
  using namespace shardc::rt;
  ExecutorRegistry registry = ExecutorRegistry::builtIn();
  registry.add({"cuda", registry.find("cuda")->check,
                [](const ExecutorContext &context) -> std::unique_ptr<Executor> {
                  return std::make_unique<DeviceExecutor>(
                      context, DevicePlugin{"fake", &FakeDevice::table(), nullptr});
                }});
  return registry;
}

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_DEVICE_FAKEPROGRAM_H
