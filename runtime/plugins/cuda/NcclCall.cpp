// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One collective over tensors, dims and uneven shards, by NCCL's operations over dense memory:
// first what is strided is packed, then NCCL gets all operands in one group, then what it has
// brought is unpacked. All of it is on the stream.
#include "runtime/plugins/cuda/NcclWorld.h"
#include "runtime/plugins/cuda/Operations.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

namespace shardc::plugin::cuda {

namespace {

constexpr size_t blockAlignment = 256;

/// -1: it has no such type.
int ncclType(shardrt_type type) {
  switch (type) {
  case SHARDRT_F32:
    return ncclTypeF32;
  case SHARDRT_F64:
    return ncclTypeF64;
  case SHARDRT_F16:
    return ncclTypeF16;
  case SHARDRT_BF16:
    return ncclTypeBF16;
  case SHARDRT_I64:
    return ncclTypeI64;
  case SHARDRT_I32:
    return ncclTypeI32;
  case SHARDRT_I8:
    return ncclTypeI8;
  case SHARDRT_U8:
  case SHARDRT_BOOL:
    return ncclTypeU8;
  default:
    return -1;
  }
}

bool isFloat(shardrt_type type) {
  return type == SHARDRT_F32 || type == SHARDRT_F64 || type == SHARDRT_F16 || type == SHARDRT_BF16;
}

} // namespace

NcclOperation ncclOperation(shardrt_type type, uint32_t reduction, uint32_t members,
                            bool alsoOtherwise) {
  NcclOperation operation{ncclType(type), -1};
  if (!operation.offered())
    return operation;
  if (type == SHARDRT_BOOL) { // or, and
    bool any = reduction == SHARDRT_SUM || reduction == SHARDRT_MAX;
    operation.reduction = any ? ncclReduceMax : ncclReduceMin;
    return operation;
  }
  // NaNs are lost in its minima and maxima; an average is the sum of quotients, which is exact only
  // for powers of two, and of integers it is not what shardrt.h says.
  bool different = false;
  switch (reduction) {
  case SHARDRT_SUM:
    operation.reduction = ncclReduceSum;
    break;
  case SHARDRT_PROD:
    operation.reduction = ncclReduceProd;
    break;
  case SHARDRT_AVG:
    operation.reduction = ncclReduceAvg;
    different = !isFloat(type) || !std::has_single_bit(members);
    break;
  default:
    operation.reduction = reduction == SHARDRT_MIN ? ncclReduceMin : ncclReduceMax;
    different = isFloat(type);
  }
  if (different && !alsoOtherwise)
    operation.type = -1;
  return operation;
}

/// A tensor of the call.
struct NcclCall::Operand {
  Operand(const shardrt_collective_operand &facts, const shardrt_collective_tensor &tensor,
          uint32_t members)
      : facts(facts), tensor(tensor), width(size_t(elementBytes(facts.type))), members(members) {}

  const shardrt_collective_operand &facts;
  const shardrt_collective_tensor &tensor;
  const size_t width;
  const uint32_t members;

  bool isExchange() const { return facts.gather_dim >= 0 && facts.gather_dim == facts.scatter_dim; }
  size_t product(int32_t begin, int32_t end) const {
    size_t all = 1;
    for (int32_t d = begin; d < end; ++d)
      all *= size_t(tensor.extents[d]);
    return all;
  }
  size_t elements() const { return product(0, facts.rank); }
  const char *in() const { return static_cast<const char *>(tensor.in); }
  char *out() const { return static_cast<char *>(tensor.out); }
};

/// The pieces of a dense tensor that is cut along one dim: dense blocks where everything in front
/// of the dim has one element, else rows at a distance.
struct NcclCall::Block {
  size_t rows = 1;                    ///< of each piece
  size_t pitch = 0;                   ///< bytes from row to row in the tensor
  std::vector<size_t> offsets, bytes; ///< of a row of each piece, in the tensor

  /// `cut`: extents of the pieces; `full`: of the tensor, on the dim; `others`: a dim that is cut
  /// as well, and its extent here.
  Block(const Operand &o, int32_t dim, const int64_t *cut, int64_t full, int32_t otherDim,
        int64_t otherExtent) {
    size_t inner = o.width;
    for (int32_t d = 0; d < o.facts.rank; ++d) {
      auto extent = size_t(d == otherDim ? otherExtent : o.tensor.extents[d]);
      if (d < dim)
        rows *= extent;
      else if (d > dim)
        inner *= extent;
    }
    pitch = size_t(full) * inner;
    size_t at = 0;
    for (uint32_t q = 0; q < o.members; ++q) {
      offsets.push_back(at);
      bytes.push_back(size_t(cut[q]) * inner);
      at += bytes.back();
    }
  }
  bool isDense() const { return rows == 1; }
  size_t size(size_t q) const { return rows * bytes[q]; }
  bool isEven() const {
    return std::ranges::all_of(bytes, [&](size_t one) { return one == bytes[0]; });
  }
};

/// What is to be done, in this order: copies, calls of NCCL, copies. Memory for blocks is known
/// when all operands are.
class NcclCall::Plan {
public:
  explicit Plan(NcclCall &call) : call(call), n(call.n), p(call.p) {}

  void add(const Operand &o) {
    switch (call.c.kind) {
    case SHARDRT_ALL_GATHER:
      return allGather(o);
    case SHARDRT_ALL_TO_ALL:
      return allToAll(o);
    case SHARDRT_ALL_REDUCE:
      return allReduce(o);
    case SHARDRT_REDUCE_SCATTER:
      return reduceScatter(o);
    case SHARDRT_BROADCAST:
      return broadcast(o);
    default:
      return permute(o);
    }
  }

  void perform() {
    if (scratchBytes > 0)
      scratch = call.scratch.reserve(call.stream, scratchBytes);
    for (const auto &step : before)
      step();
    performGroup(calls);
    for (const auto &step : between)
      step();
    performGroup(laterCalls);
    for (const auto &step : after)
      step();
  }

private:
  using Place = std::function<char *()>;
  using Calls = std::vector<std::pair<const char *, std::function<NcclResult()>>>;

  void performGroup(const Calls &list) {
    if (list.empty())
      return;
    const NcclLibrary &nccl = call.nccl;
    nccl.check("ncclGroupStart", nccl.groupStart());
    // A group that was begun is ended, whatever happens in it.
    NcclResult failed = ncclOk;
    const char *function = "";
    for (const auto &[name, one] : list)
      if (NcclResult result = one(); result != ncclOk && result != ncclIsInProgress) {
        failed = result;
        function = name;
        break;
      }
    NcclResult ended = nccl.groupEnd();
    nccl.check(function, failed, call.handle);
    nccl.check("ncclGroupEnd", ended, call.handle);
    call.settle();
  }

  /// A block of memory; where it is, is known when all operands have said what they need.
  Place reserve(size_t bytes) {
    size_t at = scratchBytes;
    scratchBytes += (bytes + blockAlignment - 1) / blockAlignment * blockAlignment;
    return [this, at] { return scratch + at; };
  }
  static Place at(char *memory, size_t offset = 0) {
    return [memory, offset] { return memory + offset; };
  }
  static Place at(const char *memory, size_t offset = 0) {
    return at(const_cast<char *>(memory), offset);
  }

  void send(size_t q, size_t bytes, Place from, bool later = false) {
    if (bytes > 0)
      (later ? laterCalls : calls)
          .emplace_back("ncclSend", [this, q, bytes, from = std::move(from)] {
            return call.nccl.send(from(), bytes, ncclTypeU8, int(q), call.handle, call.stream);
          });
  }
  void receive(size_t q, size_t bytes, Place to, bool later = false) {
    if (bytes > 0)
      (later ? laterCalls : calls).emplace_back("ncclRecv", [this, q, bytes, to = std::move(to)] {
        return call.nccl.receive(to(), bytes, ncclTypeU8, int(q), call.handle, call.stream);
      });
  }
  void copyBefore(Place to, Place from, size_t bytes) {
    if (bytes > 0)
      before.emplace_back([this, to = std::move(to), from = std::move(from), bytes] {
        if (char *target = to(), *source = from(); target != source)
          call.copy(target, source, bytes);
      });
  }

  /// Where each piece that leaves is a dense block.
  std::vector<Place> pack(const char *tensor, const Block &block) {
    std::vector<Place> places;
    for (size_t q = 0; q < n; ++q) {
      if (block.isDense()) {
        places.push_back(at(tensor, block.offsets[q]));
        continue;
      }
      places.push_back(reserve(block.size(q)));
      if (block.size(q) > 0)
        before.emplace_back([this, to = places.back(), from = tensor + block.offsets[q], q, block] {
          call.copyRows(to(), block.bytes[q], from, block.pitch, block.bytes[q], block.rows);
        });
    }
    return places;
  }
  /// Puts a dense block into its piece of the tensor, behind NCCL.
  void unpack(char *tensor, const Block &block, size_t q, Place from) {
    if (block.size(q) > 0)
      after.emplace_back([this, to = tensor + block.offsets[q], from = std::move(from), q, block] {
        call.copyRows(to, block.pitch, from(), block.bytes[q], block.bytes[q], block.rows);
      });
  }

  void allGather(const Operand &o) {
    const int32_t dim = o.facts.gather_dim;
    Block block(o, dim, o.tensor.gather, o.tensor.extents[dim], -1, 0);
    const size_t own = block.size(p);
    if (block.isEven() && n > 1) {
      if (own == 0)
        return;
      Place to = block.isDense() ? at(o.out()) : reserve(own * n);
      calls.emplace_back("ncclAllGather", [this, from = o.in(), to, own] {
        return call.nccl.allGather(from, to(), own, ncclTypeU8, call.handle, call.stream);
      });
      for (size_t q = 0; q < n && !block.isDense(); ++q)
        unpack(o.out(), block, q, [to, own, q] { return to() + q * own; });
      return;
    }
    for (size_t q = 0; q < n; ++q) {
      if (q == p) {
        if (block.isDense())
          copyBefore(at(o.out(), block.offsets[p]), at(o.in()), own);
        else
          unpack(o.out(), block, p, at(o.in()));
        continue;
      }
      send(q, own, at(o.in()));
      Place to = block.isDense() ? at(o.out(), block.offsets[q]) : reserve(block.size(q));
      receive(q, block.size(q), to);
      if (!block.isDense())
        unpack(o.out(), block, q, to);
    }
  }

  void allToAll(const Operand &o) {
    const int32_t g = o.facts.gather_dim, s = o.facts.scatter_dim;
    const int64_t *gather = o.tensor.gather, *scatter = o.tensor.scatter;
    int64_t arriving = std::accumulate(gather, gather + n, int64_t(0));
    Block leaves = o.isExchange() ? Block(o, s, scatter, o.tensor.extents[s], -1, 0)
                                  : Block(o, s, scatter, o.tensor.extents[s], g, gather[p]);
    Block arrives = o.isExchange() ? Block(o, g, gather, arriving, -1, 0)
                                   : Block(o, g, gather, arriving, s, scatter[p]);
    std::vector<Place> from = pack(o.in(), leaves);
    for (size_t q = 0; q < n; ++q) {
      if (q == p) {
        if (arrives.isDense())
          copyBefore(at(o.out(), arrives.offsets[p]), from[p], leaves.size(p));
        else
          unpack(o.out(), arrives, p, from[p]);
        continue;
      }
      send(q, leaves.size(q), from[q]);
      Place to = arrives.isDense() ? at(o.out(), arrives.offsets[q]) : reserve(arrives.size(q));
      receive(q, arrives.size(q), to);
      if (!arrives.isDense())
        unpack(o.out(), arrives, q, to);
    }
  }

  NcclOperation operation(const Operand &o) const {
    if (call.reduces == NcclReduces::Nothing)
      return {};
    return ncclOperation(o.facts.type, call.c.reduction, n,
                         call.reduces == NcclReduces::Everything);
  }

  /// Every member gives each its piece, which that one reduces in the order of positions.
  /// `from[q]`: the piece of member q, of `bytes[q]`.
  void reducePieces(const Operand &o, const std::vector<Place> &from,
                    const std::vector<size_t> &bytes, Place result) {
    const size_t own = bytes[p];
    const size_t stride = (own + blockAlignment - 1) / blockAlignment * blockAlignment;
    Place others = reserve(stride * n);
    for (size_t q = 0; q < n; ++q)
      if (q != p) {
        send(q, bytes[q], from[q]);
        receive(q, own, [others, stride, q] { return others() + stride * q; });
      }
    if (own > 0)
      between.emplace_back(
          [this, &o, own, stride, others, mine = from[p], result = std::move(result)] {
            call.reduction.run(o.facts.type, call.c.reduction, result(),
                               {mine(), others(), stride, n, p}, own / o.width, call.stream);
          });
  }

  /// Each member reduces a part of the elements; then all get all parts.
  void allReduceInOrder(const Operand &o, size_t count) {
    const size_t part = (count + n - 1) / n;
    std::vector<Place> from, to;
    std::vector<size_t> bytes;
    for (size_t q = 0; q < n; ++q) {
      size_t begin = std::min(count, q * part), end = std::min(count, (q + 1) * part);
      from.push_back(at(o.in(), begin * o.width));
      to.push_back(at(o.out(), begin * o.width));
      bytes.push_back((end - begin) * o.width);
    }
    reducePieces(o, from, bytes, to[p]);
    for (size_t q = 0; q < n; ++q)
      if (q != p) {
        send(q, bytes[p], to[p], true);
        receive(q, bytes[q], to[q], true);
      }
  }

  void allReduce(const Operand &o) {
    const size_t count = o.elements();
    if (count == 0)
      return;
    if (n == 1)
      return copyBefore(at(o.out()), at(o.in()), count * o.width);
    const NcclOperation how = operation(o);
    if (!how.offered())
      return allReduceInOrder(o, count);
    calls.emplace_back("ncclAllReduce", [this, &o, count, how] {
      return call.nccl.allReduce(o.in(), o.out(), count, how.type, how.reduction, call.handle,
                                 call.stream);
    });
  }

  void reduceScatter(const Operand &o) {
    const int32_t dim = o.facts.scatter_dim;
    Block block(o, dim, o.tensor.scatter, o.tensor.extents[dim], -1, 0);
    if (n == 1)
      return copyBefore(at(o.out()), at(o.in()), block.size(0));
    if (o.elements() == 0)
      return;
    const NcclOperation how = operation(o);
    if (!how.offered()) {
      std::vector<size_t> bytes;
      for (size_t q = 0; q < n; ++q)
        bytes.push_back(block.size(q));
      return reducePieces(o, pack(o.in(), block), bytes, at(o.out()));
    }
    if (block.isEven()) {
      const size_t count = block.size(p) / o.width;
      Place from = at(o.in());
      if (!block.isDense()) {
        from = reserve(block.size(p) * n);
        for (size_t q = 0; q < n; ++q)
          before.emplace_back([this, from, source = o.in() + block.offsets[q], q, block] {
            call.copyRows(from() + q * block.size(q), block.bytes[q], source, block.pitch,
                          block.bytes[q], block.rows);
          });
      }
      calls.emplace_back("ncclReduceScatter", [this, from, to = o.out(), count, how] {
        return call.nccl.reduceScatter(from(), to, count, how.type, how.reduction, call.handle,
                                       call.stream);
      });
      return;
    }
    std::vector<Place> from = pack(o.in(), block);
    for (size_t q = 0; q < n; ++q)
      if (size_t count = block.size(q) / o.width; count > 0)
        calls.emplace_back("ncclReduce", [this, from = from[q], &o, count, how, q] {
          return call.nccl.reduce(from(), q == p ? o.out() : nullptr, count, how.type,
                                  how.reduction, int(q), call.handle, call.stream);
        });
  }

  void broadcast(const Operand &o) {
    const size_t bytes = o.elements() * o.width;
    if (bytes == 0)
      return;
    if (n == 1)
      return copyBefore(at(o.out()), at(o.in()), bytes);
    calls.emplace_back("ncclBroadcast", [this, &o, bytes] {
      return call.nccl.broadcast(o.in(), o.out(), bytes, ncclTypeU8, int(call.c.root), call.handle,
                                 call.stream);
    });
  }

  void permute(const Operand &o) {
    auto bytesOf = [&](uint32_t q) {
      size_t bytes = o.width;
      for (int32_t d = 0; d < o.facts.rank; ++d)
        bytes *= size_t(d == o.facts.gather_dim ? o.tensor.gather[q] : o.tensor.extents[d]);
      return bytes;
    };
    bool arrives = false;
    for (uint32_t i = 0; i < call.c.n_pairs; ++i) {
      uint32_t source = call.c.permutation[2 * i], target = call.c.permutation[2 * i + 1];
      if (source == p && target == p)
        copyBefore(at(o.out()), at(o.in()), bytesOf(p));
      else if (source == p)
        send(target, bytesOf(p), at(o.in()));
      else if (target == p)
        receive(source, bytesOf(source), at(o.out()));
      arrives |= target == p;
    }
    if (size_t bytes = bytesOf(p); !arrives && bytes > 0)
      before.emplace_back([this, to = o.out(), bytes] {
        call.device.check(call.device.driver().fill(address(to), 0, bytes, call.stream),
                          "filling memory");
      });
  }

  NcclCall &call;
  const uint32_t n, p;
  size_t scratchBytes = 0;
  char *scratch = nullptr;
  std::vector<std::function<void()>> before, between, after;
  Calls calls, laterCalls;
};

void NcclCall::copy(void *to, const void *from, size_t bytes) {
  device.check(device.driver().copy(address(to), address(from), bytes, stream),
               "a copy of " + std::to_string(bytes) + " bytes");
}

void NcclCall::copyRows(char *to, size_t toPitch, const char *from, size_t fromPitch, size_t bytes,
                        size_t rows) {
  if (rows == 1 || (toPitch == bytes && fromPitch == bytes))
    return copy(to, from, rows * bytes);
  device.copyRows(to, toPitch, from, fromPitch, bytes, rows, stream);
}

void NcclCall::enqueue() {
  std::vector<Operand> operands;
  operands.reserve(c.n_operands);
  Plan plan(*this);
  for (uint32_t i = 0; i < c.n_operands; ++i)
    plan.add(operands.emplace_back(c.operands[i], call.tensors[i], n));
  plan.perform();
}

} // namespace shardc::plugin::cuda
