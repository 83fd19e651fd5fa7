// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/executor/WriteCheck.h"

#include "runtime/support/Failure.h"

#include <algorithm>
#include <cstring>

namespace shardc::rt {

namespace {

/// No byte is the same in both. Read as numbers the first are NaN in every floating point type, and
/// large integers; the second are positive and finite, with zero bytes for booleans.
constexpr uint8_t fills[2][8] = {{0xf5, 0x7f, 0xf5, 0x7f, 0xf5, 0x7f, 0xf5, 0x7f},
                                 {0x00, 0x00, 0x80, 0x3f, 0x00, 0x00, 0x80, 0x3f}};

/// Calls `visit(memory, begin, end)` for ranges that hold all bytes that differ from `before`, and
/// between which at least a block is the same.
template <typename Visit>
void forEachChange(std::span<const CheckedMemory> memory,
                   const std::vector<std::vector<uint8_t>> &before, Visit visit) {
  constexpr size_t block = 64;
  for (size_t m = 0; m < memory.size(); ++m) {
    auto *now = static_cast<const uint8_t *>(memory[m].data);
    size_t begin = 0, end = 0; // of the range so far
    for (size_t at = 0; at < memory[m].bytes; at += block) {
      size_t size = std::min(block, memory[m].bytes - at);
      if (std::memcmp(now + at, before[m].data() + at, size) == 0)
        continue;
      if (at != end) {
        if (end > begin)
          visit(m, begin, end);
        begin = at;
      }
      end = at + size;
    }
    if (end > begin)
      visit(m, begin, end);
  }
}

std::string describeOp(const char *name, const char *location) {
  std::string text = name && *name ? name : "an op without a name";
  return location && *location ? text + " at " + location : text;
}

} // namespace

/// What the program sees instead of the runtime's services: the same, with a look at memory where
/// an op ends.
struct CheckingServices {
  static WriteCheck &self(void *runtime) { return *static_cast<WriteCheck *>(runtime); }

  static uint64_t start(void *runtime, const shardrt_collective *collective,
                        const shardrt_collective_tensor *tensors) {
    WriteCheck &check = self(runtime);
    check.complete(check.current); // other ranks may read its inputs from now on
    uint64_t token = check.services->start(check.runtime, collective, tensors);
    check.inFlight[token] = collective;
    return token;
  }
  static int32_t wait(void *runtime, uint64_t token) {
    WriteCheck &check = self(runtime);
    check.complete(check.current);
    int32_t status = check.services->wait(check.runtime, token);
    if (auto found = check.inFlight.find(token); found != check.inFlight.end()) {
      check.complete(describeOp(found->second->name, found->second->location));
      check.inFlight.erase(found);
    }
    return status;
  }
  static int32_t collective(void *runtime, const shardrt_collective *collective,
                            const shardrt_collective_tensor *tensors) {
    WriteCheck &check = self(runtime);
    check.complete(check.current);
    int32_t status = check.services->collective(check.runtime, collective, tensors);
    check.complete(describeOp(collective->name, collective->location));
    return status;
  }
  static void parallelFor(void *runtime, void (*body)(void *, int64_t, int64_t), void *arg,
                          int64_t n, int64_t grain) {
    WriteCheck &check = self(runtime);
    check.services->parallel_for(check.runtime, body, arg, n, grain);
  }
  static int32_t gemm(void *runtime, const shardrt_gemm *gemm) {
    WriteCheck &check = self(runtime);
    return check.services->gemm(check.runtime, gemm);
  }
  static int32_t fail(void *runtime, const char *location, const char *message) {
    WriteCheck &check = self(runtime);
    return check.services->fail(check.runtime, location, message);
  }
  static void mark(void *runtime, uint32_t op) {
    WriteCheck &check = self(runtime);
    check.complete(check.current);
    bool isKnown = op < check.ops.size();
    check.current = isKnown ? describeOp(check.ops[op].name, check.ops[op].location) : "";
    check.services->mark(check.runtime, op);
  }
  static void *scratch(void *runtime, uint32_t slot, uint64_t bytes) {
    WriteCheck &check = self(runtime);
    void *data = check.services->scratch(check.runtime, slot, bytes);
    if (data)
      check.fill(data, bytes);
    return data;
  }
  static int32_t launch(void *runtime, const shardrt_launch *launch) {
    WriteCheck &check = self(runtime);
    return check.services->launch(check.runtime, launch);
  }
  static int32_t commit(void *runtime) {
    WriteCheck &check = self(runtime);
    return check.services->commit(check.runtime);
  }
  static int32_t readSizes(void *runtime, int64_t *sizes, const void *from, int64_t count,
                           int64_t atMost) {
    WriteCheck &check = self(runtime);
    return check.services->read_sizes(check.runtime, sizes, from, count, atMost);
  }
  static int32_t callOp(void *runtime, shardrt_op_call *call, shardrt_op_function function) {
    WriteCheck &check = self(runtime);
    return check.services->call_op(check.runtime, call, function);
  }
  static const shardrt_services table;
};

const shardrt_services CheckingServices::table = {
    sizeof(shardrt_services),     CheckingServices::start,       CheckingServices::wait,
    CheckingServices::collective, CheckingServices::parallelFor, CheckingServices::gemm,
    CheckingServices::fail,       CheckingServices::mark,        CheckingServices::scratch,
    CheckingServices::launch,     CheckingServices::commit,      CheckingServices::readSizes,
    CheckingServices::callOp};

void WriteCheck::fill(void *data, size_t bytes) const {
  auto *out = static_cast<uint8_t *>(data);
  const uint8_t *pattern = fills[isFirst ? 0 : 1];
  for (size_t i = 0; i < bytes; ++i)
    out[i] = pattern[i % 8];
}

std::vector<WriteCheck::Bytes> WriteCheck::begin() {
  current.clear();
  inFlight.clear();
  std::vector<Bytes> contents;
  for (size_t m = 0; m < memory.size(); ++m) {
    const CheckedMemory &part = memory[m];
    if (part.isKept)
      std::ranges::copy(kept[m], static_cast<uint8_t *>(part.data));
    else
      fill(part.data, part.bytes);
    auto *data = static_cast<const uint8_t *>(part.data);
    contents.emplace_back(data, data + part.bytes);
  }
  return contents;
}

/// Nothing is thrown through generated code.
void WriteCheck::complete(const std::string &name) noexcept {
  if (!problem.empty())
    return;
  try {
    if (isFirst)
      record(name);
    else
      compare(name);
  } catch (const std::exception &error) {
    problem = error.what();
  }
}

void WriteCheck::record(const std::string &name) {
  Step &step = steps.emplace_back();
  step.name = name;
  forEachChange(memory, known, [&](size_t m, size_t begin, size_t end) {
    auto *now = static_cast<const uint8_t *>(memory[m].data);
    step.written.push_back({m, begin, Bytes(now + begin, now + end)});
    std::copy(now + begin, now + end, known[m].begin() + ptrdiff_t(begin));
  });
}

/// Bytes that the step changed in either run must be what they were in the first. Others are set
/// right, so that later steps are not blamed for them.
void WriteCheck::compare(const std::string &name) {
  if (next >= steps.size() || steps[next].name != name) {
    problem = "the second run of the memory check had another sequence of ops";
    return;
  }
  bool isDifferent = false;
  auto settle = [&](size_t m, size_t i) {
    auto *now = static_cast<uint8_t *>(memory[m].data) + i;
    isDifferent |= *now != known[m][i];
    *now = knownNow[m][i] = known[m][i];
  };
  for (const Written &written : steps[next++].written)
    for (size_t i = 0; i < written.bytes.size(); ++i) {
      uint8_t &before = known[written.memory][written.offset + i];
      if (written.bytes[i] == before)
        continue;
      before = written.bytes[i];
      settle(written.memory, written.offset + i);
    }
  forEachChange(memory, knownNow, [&](size_t m, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      if (static_cast<const uint8_t *>(memory[m].data)[i] != knownNow[m][i])
        settle(m, i);
  });
  if (isDifferent)
    findings.push_back((name.empty() ? "the program, before its first op," : name) +
                       " computed results from memory that nothing had written");
}

void WriteCheck::findUnwritten(const std::vector<Bytes> &afterFirst) {
  for (size_t m = 0; m < memory.size(); ++m) {
    const CheckedMemory &part = memory[m];
    if (part.name.empty() || part.isKept)
      continue;
    auto *now = static_cast<const uint8_t *>(part.data);
    size_t elements = part.bytes / part.elementBytes, unwritten = 0;
    for (size_t e = 0; e < elements; ++e) {
      bool same = true;
      for (size_t i = e * part.elementBytes; i < (e + 1) * part.elementBytes && same; ++i)
        same = afterFirst[m][i] == fills[0][i % 8] && now[i] == fills[1][i % 8];
      unwritten += same;
    }
    if (unwritten > 0)
      findings.push_back("output " + part.name + " was returned with " + std::to_string(unwritten) +
                         " of " + std::to_string(elements) + " elements unwritten");
  }
}

void WriteCheck::attach(shardrt_frame &frame) {
  services = frame.services;
  runtime = frame.runtime;
  frame.services = &CheckingServices::table;
  frame.runtime = this;
}

void WriteCheck::run(Executor &executor, const std::function<void()> &call) {
  if (!executor.observe(this))
    throw Failure(SHARDRT_INVALID_ARGUMENT,
                  "the memory of programs that compute with " + executor.description() +
                      " cannot be checked: create the model without SHARDRT_CHECK_MEMORY");
  struct Observing {
    Executor &executor;
    ~Observing() { executor.observe(nullptr); }
  } observing{executor};
  for (const CheckedMemory &part : memory) {
    auto *data = static_cast<const uint8_t *>(part.data);
    kept.emplace_back(data, data + (part.isKept ? part.bytes : 0));
  }
  known = begin();
  std::vector<Bytes> filled = known;
  call();
  complete(current);
  std::vector<Bytes> afterFirst = std::move(known);
  known = std::move(filled);
  isFirst = false;
  knownNow = begin();
  call();
  complete(current);
  if (!problem.empty())
    throw Failure(SHARDRT_INTERNAL, "memory check: " + problem);
  findUnwritten(afterFirst);
  if (findings.empty())
    return;
  // One line for all calls of one op.
  std::sort(findings.begin(), findings.end());
  findings.erase(std::unique(findings.begin(), findings.end()), findings.end());
  std::string text = "the program reads or returns memory that it has not written:";
  for (const std::string &finding : findings)
    text += "\n  " + finding;
  throw Failure(SHARDRT_PROGRAM_ERROR, text);
}

} // namespace shardc::rt
