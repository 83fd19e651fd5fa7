// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a collective must compute, element by element and by other means than the runtime's.
#ifndef SHARDC_TEST_UNIT_RUNTIME_COLLECTIVEREFERENCE_H
#define SHARDC_TEST_UNIT_RUNTIME_COLLECTIVEREFERENCE_H

#include "runtime/comm/Call.h"
#include "runtime/support/Types.h"
#include "test/unit/runtime/Elements.h"

#include <gtest/gtest.h>
#include <numeric>
#include <optional>
#include <sys/mman.h>

namespace test {

using namespace shardc::rt;

using Table = std::vector<int64_t>;

struct OperandCase {
  Table extents;
  int32_t gatherDim = -1, scatterDim = -1;
  Table gather = {}, scatter = {}; ///< empty: the chunk rule
  /// An all_to_all within one dim: row by row what each member gives to each, and how many elements
  /// stay behind these in every member's input. No rows: equal pieces of the dim.
  Table counts = {};
  int64_t unused = 0;
  bool isExchange() const { return gatherDim >= 0 && gatherDim == scatterDim; }
};
struct Case {
  uint32_t kind, reduction;
  shardrt_type type;
  std::vector<OperandCase> operands = {};
  uint32_t root = 0;
  std::vector<uint32_t> pairs = {};
  bool inPlace = false;
};

/// torch.chunk, piece by piece.
inline Table chunks(int64_t full, size_t n) {
  int64_t size = full / int64_t(n) + (full % int64_t(n) ? 1 : 0);
  Table out;
  for (size_t i = 0; i < n; ++i) {
    out.push_back(std::min(size, full));
    full -= out.back();
  }
  return out;
}
inline Table membersExtents(const Table &given, const OperandCase &o, int32_t dim, size_t n,
                            bool permute) {
  if (dim < 0)
    return {};
  if (!given.empty())
    return given;
  return permute ? Table(n, o.extents[size_t(dim)]) : chunks(o.extents[size_t(dim)], n);
}

inline int64_t linear(const Table &shape, const Table &index) {
  int64_t at = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    at = at * shape[d] + index[d];
  return at;
}

/// Bytes that ranks see and change as the test does, also where they are processes that it forks.
template <typename T> struct SharedAllocator {
  using value_type = T;
  SharedAllocator() = default;
  template <typename U> SharedAllocator(const SharedAllocator<U> &) {}

  /// Room for what is alive at a time; all of it is given up when nothing is.
  struct Room {
    static constexpr size_t bytes = size_t(1) << 30;
    uint8_t *const data = static_cast<uint8_t *>(mmap(
        nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    size_t used = 0, alive = 0;
  };
  static Room &room() {
    static Room one;
    return one;
  }
  T *allocate(size_t count) {
    Room &here = room();
    size_t at = here.used;
    here.used += (count * sizeof(T) + 63) / 64 * 64;
    ++here.alive;
    if (here.data == MAP_FAILED || here.used > Room::bytes)
      throw std::bad_alloc();
    return reinterpret_cast<T *>(here.data + at);
  }
  void deallocate(T *, size_t) {
    if (--room().alive == 0)
      room().used = 0;
  }
  bool operator==(const SharedAllocator &) const { return true; }
};
using Bytes = std::vector<uint8_t, SharedAllocator<uint8_t>>;

/// One operand as the reference sees it: everybody's inputs, and where each element comes from.
struct Reference {
  const Case &c;
  const OperandCase &o;
  size_t n;
  Table gather = membersExtents(o.gather, o, o.gatherDim, n, c.kind == SHARDRT_PERMUTE);
  Table scatter = membersExtents(o.scatter, o, o.scatterDim, n, false);

  int64_t given(size_t from, size_t to) const {
    return o.counts.empty() ? o.extents[size_t(o.gatherDim)] / int64_t(n) : o.counts[from * n + to];
  }
  /// What a member passes of an exchange.
  Table leaving(size_t p) const {
    Table table;
    for (size_t q = 0; q < n; ++q)
      table.push_back(given(p, q));
    return table;
  }
  Table arriving(size_t p) const {
    Table table;
    for (size_t q = 0; q < n; ++q)
      table.push_back(given(q, p));
    return table;
  }
  static int64_t sum(const Table &table) {
    return std::accumulate(table.begin(), table.end(), int64_t(0));
  }

  Table inShape(size_t p) const {
    Table shape = o.extents;
    if (o.isExchange()) {
      shape[size_t(o.gatherDim)] = sum(leaving(p)) + o.unused;
      return shape;
    }
    if (o.gatherDim >= 0)
      shape[size_t(o.gatherDim)] = gather[p];
    return shape;
  }
  int64_t source(size_t p) const {
    for (size_t i = 0; i < c.pairs.size(); i += 2)
      if (c.pairs[i + 1] == p)
        return c.pairs[i];
    return -1;
  }
  Table outShape(size_t p) const {
    Table shape = o.extents;
    if (o.isExchange()) {
      shape[size_t(o.gatherDim)] = sum(arriving(p));
      return shape;
    }
    if (o.scatterDim >= 0)
      shape[size_t(o.scatterDim)] = scatter[p];
    if (c.kind == SHARDRT_PERMUTE && o.gatherDim >= 0)
      shape[size_t(o.gatherDim)] = gather[source(p) < 0 ? p : size_t(source(p))];
    return shape;
  }
  double input(const std::vector<Bytes> &in, size_t q, const Table &index) const {
    return test::get(c.type, in[q].data(), size_t(linear(inShape(q), index)));
  }
  double reduce(const std::vector<Bytes> &in, const Table &index) const {
    double acc = input(in, 0, index);
    for (size_t q = 1; q < n; ++q) {
      double x = input(in, q, index);
      switch (c.reduction) {
      case SHARDRT_MIN:
        acc = std::min(acc, x);
        break;
      case SHARDRT_MAX:
        acc = std::max(acc, x);
        break;
      case SHARDRT_PROD:
        acc *= x;
        break;
      default:
        acc += x;
      }
    }
    if (c.type == SHARDRT_BOOL)
      return acc != 0;
    if (c.reduction != SHARDRT_AVG)
      return acc;
    return c.type == SHARDRT_F64 || c.type >= SHARDRT_I64 ? acc / double(n)
                                                          : double(float(acc) / float(n));
  }
  double expected(const std::vector<Bytes> &in, size_t p, Table index) const {
    if (o.isExchange()) {
      int64_t &at = index[size_t(o.gatherDim)];
      size_t q = 0;
      for (; at >= given(q, p); ++q)
        at -= given(q, p);
      for (size_t before = 0; before < p; ++before)
        at += given(q, before);
      return input(in, q, index);
    }
    if (o.scatterDim >= 0)
      index[size_t(o.scatterDim)] +=
          std::accumulate(scatter.begin(), scatter.begin() + ptrdiff_t(p), int64_t(0));
    if (c.reduction != SHARDRT_REDUCE_NONE)
      return reduce(in, index);
    if (c.kind == SHARDRT_BROADCAST)
      return input(in, c.root, index);
    if (c.kind == SHARDRT_PERMUTE)
      return source(p) < 0 ? 0 : input(in, size_t(source(p)), index);
    size_t q = 0;
    for (int64_t &at = index[size_t(o.gatherDim)]; at >= gather[q]; ++q)
      at -= gather[q];
    return input(in, q, index);
  }
};

inline int64_t count(const Table &shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
}

/// Inputs and outputs of every member for one operand.
struct Memory {
  std::vector<Bytes> in, out;
};

inline void fill(const Reference &r, Memory &memory, unsigned seed) {
  for (size_t q = 0; q < r.n; ++q) {
    int64_t elements = count(r.inShape(q));
    memory.in.emplace_back(size_t(elements * typeBytes(r.c.type)));
    for (int64_t i = 0; i < elements; ++i)
      test::set(r.c.type, memory.in[q].data(), size_t(i),
                test::smallValue(r.c.type, seed + unsigned(q * 7919) + unsigned(i)));
    memory.out.emplace_back(size_t(count(r.outShape(q)) * typeBytes(r.c.type)), 0xcd);
  }
}

/// Checks what the members got, or one of them.
inline void check(const Reference &r, const Memory &memory, const std::string &what,
                  std::optional<size_t> only = std::nullopt) {
  for (size_t p = only.value_or(0); p < only.value_or(r.n - 1) + 1; ++p) {
    Table shape = r.outShape(p);
    for (int64_t i = 0; i < count(shape); ++i) {
      Table index(shape.size());
      int64_t rest = i;
      for (size_t d = shape.size(); d-- > 0;) {
        index[d] = rest % shape[d];
        rest /= shape[d];
      }
      uint8_t wanted[8] = {};
      test::set(r.c.type, wanted, 0, r.expected(memory.in, p, index));
      ASSERT_EQ(test::get(r.c.type, memory.out[p].data(), size_t(i)),
                test::get(r.c.type, wanted, 0))
          << what << ", member " << p << ", element " << i;
    }
  }
}

inline std::string text(const Case &c) {
  std::string out =
      std::string(kindName(c.kind)) + " " + reductionName(c.reduction) + " " + typeName(c.type);
  for (const OperandCase &o : c.operands)
    out += " " + describe(c.type, o.extents.data(), o.extents.size());
  return out;
}

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_COLLECTIVEREFERENCE_H
