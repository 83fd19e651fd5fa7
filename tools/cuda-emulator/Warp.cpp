// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What lanes of a warp do together. Fragments are laid out as the PTX ISA says (mma.m16n8k16,
// m16n8k8, ldmatrix).
#include "tools/cuda-emulator/Block.h"
#include "tools/cuda-emulator/Halves.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace shardc::emulator {
namespace {

using Op = WarpOperation;

float asFloat(uint32_t bits) { return std::bit_cast<float>(bits); }

/// The value of half `h` of a word.
float half(uint32_t word, int h, bool bf16) {
  uint16_t bits = uint16_t(word >> 16 * h);
  return bf16 ? fromBf16(bits) : fromF16(bits);
}

/// Tensor cores use 10 bits of the mantissa.
float tf32(uint32_t bits) { return asFloat(bits & ~0x1fffu); }

/// The lane that a shuffle reads from; the lane itself if that is out of its segment.
uint32_t shuffleSource(Op op, uint32_t lane, uint32_t b, uint32_t c, bool &valid) {
  uint32_t segment = c >> 8 & 31, clamp = c & 31;
  b &= 31;
  uint32_t highest = (lane & segment) | (clamp & ~segment), lowest = lane & segment;
  uint32_t source;
  switch (op) {
  case Op::ShuffleUp:
    source = lane - b;
    valid = int32_t(source) >= int32_t(highest);
    break;
  case Op::ShuffleDown:
    source = lane + b;
    valid = source <= highest;
    break;
  case Op::ShuffleButterfly:
    source = lane ^ b;
    valid = source <= highest;
    break;
  default:
    source = lowest | (b & ~segment & 31);
    valid = source <= highest;
    break;
  }
  return valid ? source : lane;
}

uint32_t reduce(Op op, uint32_t a, uint32_t b) {
  switch (op) {
  case Op::ReduceAdd:
    return a + b;
  case Op::ReduceMin:
    return uint32_t(std::min(int32_t(a), int32_t(b)));
  case Op::ReduceMax:
    return uint32_t(std::max(int32_t(a), int32_t(b)));
  case Op::ReduceUnsignedMin:
    return std::min(a, b);
  case Op::ReduceUnsignedMax:
    return std::max(a, b);
  case Op::ReduceAnd:
    return a & b;
  case Op::ReduceOr:
    return a | b;
  default:
    return a ^ b;
  }
}

/// D = A * B + C of all lanes: A is 16 x k, B k x 8, C and D 16 x 8 of f32.
void multiply(EmulatedThread *lanes, Op op) {
  bool is32 = op == Op::MultiplyTf32K8 || op == Op::MultiplyTf32K4;
  bool bf16 = op == Op::MultiplyBf16K16 || op == Op::MultiplyBf16K8;
  int k = op == Op::MultiplyF16K16 || op == Op::MultiplyBf16K16 ? 16
          : op == Op::MultiplyTf32K4                            ? 4
                                                                : 8;
  float a[16][16], b[16][8], c[16][8];
  int wordsA = is32 ? k / 2 : k / 4, wordsB = wordsA / 2;
  for (int lane = 0; lane < 32; ++lane) {
    const uint32_t *in = lanes[lane].in;
    int group = lane / 4, within = lane % 4;
    for (int word = 0; word < wordsA; ++word) {
      int row = group + word % 2 * 8;
      if (is32) {
        a[row][within + word / 2 * 4] = tf32(in[word]);
        continue;
      }
      for (int h = 0; h < 2; ++h)
        a[row][within * 2 + h + word / 2 * 8] = half(in[word], h, bf16);
    }
    for (int word = 0; word < wordsB; ++word) {
      uint32_t bits = in[wordsA + word];
      if (is32) {
        b[within + word * 4][group] = tf32(bits);
        continue;
      }
      for (int h = 0; h < 2; ++h)
        b[within * 2 + h + word * 8][group] = half(bits, h, bf16);
    }
    for (int i = 0; i < 4; ++i)
      c[group + i / 2 * 8][within * 2 + i % 2] = asFloat(in[wordsA + wordsB + i]);
  }
  for (int row = 0; row < 16; ++row)
    for (int i = 0; i < k; ++i)
      for (int column = 0; column < 8; ++column)
        c[row][column] += a[row][i] * b[i][column];
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i)
      lanes[lane].out[i] = std::bit_cast<uint32_t>(c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2]);
}

/// Lane i gives the address of row i % 8 of matrix i / 8, of 8 x 8 elements of 16 bits.
void loadMatrices(Block &block, uint32_t first, int matrices, bool transposed) {
  uint16_t rows[32][8];
  for (int i = 0; i < matrices * 8; ++i) {
    EmulatedThread &t = block.state[first + i];
    uint64_t address;
    std::memcpy(&address, t.in, 8);
    std::memcpy(rows[i], reinterpret_cast<const void *>(address), 16);
  }
  for (int lane = 0; lane < 32; ++lane)
    for (int m = 0; m < matrices; ++m) {
      uint16_t pair[2];
      for (int h = 0; h < 2; ++h)
        pair[h] = transposed ? rows[m * 8 + lane % 4 * 2 + h][lane / 4]
                             : rows[m * 8 + lane / 4][lane % 4 * 2 + h];
      block.state[first + lane].out[m] = uint32_t(pair[0]) | uint32_t(pair[1]) << 16;
    }
}

} // namespace

const char *nameOf(WarpOperation operation) {
  static const char *const names[] = {
      "bar.warp.sync",       "shfl.sync.up",      "shfl.sync.down",     "shfl.sync.bfly",
      "shfl.sync.idx",       "vote.sync.any",     "vote.sync.all",      "vote.sync.uni",
      "vote.sync.ballot",    "redux.sync.add",    "redux.sync.min",     "redux.sync.max",
      "redux.sync.umin",     "redux.sync.umax",   "redux.sync.and",     "redux.sync.or",
      "redux.sync.xor",      "ldmatrix.x1",       "ldmatrix.x2",        "ldmatrix.x4",
      "ldmatrix.x1.trans",   "ldmatrix.x2.trans", "ldmatrix.x4.trans",  "mma.m16n8k16 (f16)",
      "mma.m16n8k16 (bf16)", "mma.m16n8k8 (f16)", "mma.m16n8k8 (bf16)", "mma.m16n8k8 (tf32)",
      "mma.m16n8k4 (tf32)"};
  return names[uint32_t(operation)];
}

uint32_t matricesOf(WarpOperation operation) {
  if (operation < Op::LoadMatrix1 || operation > Op::LoadMatrix4Transposed)
    return 0;
  return 1u << (uint32_t(operation) - uint32_t(Op::LoadMatrix1)) % 3;
}

bool Block::completeWarp(uint32_t warp) {
  uint32_t first = warp * warpThreads, lanes = std::min(threads - first, warpThreads);
  bool any = false;
  uint32_t seen = 0;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const EmulatedThread &t = state[first + lane];
    if (t.state != EmulatedThread::AtWarp || (seen >> lane & 1))
      continue;
    seen |= t.mask;
    uint32_t mask = t.mask;
    WarpOperation operation = t.operation;
    bool complete = true;
    for (uint32_t other = 0; other < warpThreads && complete; ++other)
      if (mask >> other & 1)
        complete = other < lanes && state[first + other].state == EmulatedThread::AtWarp &&
                   state[first + other].operation == operation && state[first + other].mask == mask;
    if (!complete)
      continue;
    perform(first, mask, operation);
    if (failed)
      return false;
    for (uint32_t other = 0; other < lanes; ++other)
      if (mask >> other & 1)
        state[first + other].state = EmulatedThread::Ready;
    any = true;
  }
  return any;
}

void Block::perform(uint32_t first, uint32_t mask, WarpOperation operation) {
  auto each = [&](auto body) {
    for (uint32_t lane = 0; lane < warpThreads; ++lane)
      if (mask >> lane & 1)
        body(lane, state[first + lane]);
  };
  uint32_t sum = 0;
  bool begun = false;
  switch (operation) {
  case Op::Sync:
    if (mask == ~0u || std::popcount(mask) == int(std::min(threads - first, warpThreads))) {
      advanceClock();
      warpSync[first / warpThreads] = clock;
    }
    return;
  case Op::ShuffleUp:
  case Op::ShuffleDown:
  case Op::ShuffleButterfly:
  case Op::ShuffleIndex:
    each([&](uint32_t lane, EmulatedThread &t) {
      bool valid;
      uint32_t source = shuffleSource(operation, lane, t.in[1], t.in[2], valid);
      if (!(mask >> source & 1)) {
        if (!failed)
          report(CUDA_ERROR_LAUNCH_FAILED, first + lane, t.site,
                 std::string(nameOf(operation)) + " reads from lane " + std::to_string(source) +
                     ", which is not in the mask");
        return;
      }
      t.out[0] = state[first + source].in[0];
      t.out[1] = valid;
    });
    return;
  case Op::VoteAny:
  case Op::VoteAll:
  case Op::VoteUniform:
  case Op::VoteBallot:
    each([&](uint32_t lane, EmulatedThread &t) { sum |= (t.in[0] & 1) << lane; });
    each([&](uint32_t, EmulatedThread &t) {
      t.out[0] = operation == Op::VoteAny       ? sum != 0
                 : operation == Op::VoteAll     ? sum == mask
                 : operation == Op::VoteUniform ? sum == mask || sum == 0
                                                : sum;
    });
    return;
  case Op::ReduceAdd:
  case Op::ReduceMin:
  case Op::ReduceMax:
  case Op::ReduceUnsignedMin:
  case Op::ReduceUnsignedMax:
  case Op::ReduceAnd:
  case Op::ReduceOr:
  case Op::ReduceXor:
    each([&](uint32_t, EmulatedThread &t) {
      sum = begun ? reduce(operation, sum, t.in[0]) : t.in[0];
      begun = true;
    });
    each([&](uint32_t, EmulatedThread &t) { t.out[0] = sum; });
    return;
  default:
    break;
  }
  if (mask != ~0u)
    return report(CUDA_ERROR_LAUNCH_FAILED, first, state[first].site,
                  std::string(nameOf(operation)) + " is not done by all lanes of the warp");
  switch (operation) {
  case Op::LoadMatrix1:
    return loadMatrices(*this, first, 1, false);
  case Op::LoadMatrix2:
    return loadMatrices(*this, first, 2, false);
  case Op::LoadMatrix4:
    return loadMatrices(*this, first, 4, false);
  case Op::LoadMatrix1Transposed:
    return loadMatrices(*this, first, 1, true);
  case Op::LoadMatrix2Transposed:
    return loadMatrices(*this, first, 2, true);
  case Op::LoadMatrix4Transposed:
    return loadMatrices(*this, first, 4, true);
  default:
    return multiply(&state[first], operation);
  }
}

} // namespace shardc::emulator
