// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/FlatTransport.h"

#include "runtime/comm/Agreement.h"
#include "runtime/comm/Reduce.h"
#include "runtime/comm/Share.h"
#include "runtime/support/Copy.h"
#include "runtime/support/Types.h"

#include <cstring>
#include <numeric>

namespace shardc::rt {

namespace {

constexpr size_t packAlignment = 64;

} // namespace

/// A transfer of a call with everything that is the same for all of them.
shardrt_transfer FlatTransport::begin(const CollectiveCall &call, uint32_t kind, shardrt_type type,
                                      uint64_t signature) {
  const shardrt_collective &c = *call.collective;
  members.assign(call.group->members.begin(), call.group->members.end());
  shardrt_transfer t{};
  t.name = c.name ? c.name : kindName(c.kind);
  t.location = c.location ? c.location : "";
  t.run = call.run;
  t.signature = signature;
  t.members = members.data();
  t.n_members = int32_t(call.group->size());
  t.position = int32_t(call.group->position);
  t.kind = int32_t(kind);
  t.type = type;
  t.reduction = SHARDRT_REDUCE_NONE;
  return t;
}

/// One operand of one call.
class FlatTransport::Operand {
public:
  Operand(FlatTransport &flat, const CollectiveCall &call, size_t index, Signature &signature,
          Clock::time_point deadline)
      : flat(flat), call(call), c(*call.collective), group(*call.group), o(call.operands[index]),
        n(group.size()), p(group.position), rank(size_t(o.facts->rank)), bytes(o.elementBytes),
        signature(signature), deadline(deadline) {}

  void perform() {
    switch (c.kind) {
    case SHARDRT_ALL_GATHER:
      return allGather();
    case SHARDRT_ALL_TO_ALL:
      return allToAll();
    case SHARDRT_ALL_REDUCE:
      return allReduce();
    case SHARDRT_REDUCE_SCATTER:
      return reduceScatter();
    case SHARDRT_BROADCAST:
      return broadcast();
    case SHARDRT_PERMUTE:
      return permute();
    }
  }

private:
  FlatTransport &flat;
  const CollectiveCall &call;
  const shardrt_collective &c;
  const Group &group;
  const CallOperand &o;
  const uint32_t n, p;
  const size_t rank;
  const int64_t bytes;
  Signature &signature;
  const Clock::time_point deadline;

  const char *in() const { return static_cast<const char *>(o.in); }
  char *out() const { return static_cast<char *>(o.out); }

  bool offers(uint32_t kind) const {
    bool reduces = kind == SHARDRT_ALL_REDUCE || kind == SHARDRT_REDUCE_SCATTER;
    return flat.offers(kind, o.facts->type, reduces ? c.reduction : uint32_t(SHARDRT_REDUCE_NONE));
  }

  /// A transfer of this kind with everything that is the same for all of this operand's.
  shardrt_transfer begin(uint32_t kind, const void *send, void *receive) {
    signature.add(uint64_t(kind));
    shardrt_transfer t = flat.begin(call, kind, o.facts->type, signature.value());
    t.send = send;
    t.receive = receive;
    return t;
  }

  /// Places blocks of these counts one after the other; returns the elements of all.
  static int64_t lineUp(Blocks &blocks) {
    int64_t total = 0;
    blocks.offsets.clear();
    for (int64_t count : blocks.counts) {
      blocks.offsets.push_back(total);
      total += count;
    }
    return total;
  }

  /// Sends and receives the blocks of flat.sent and flat.got; the own one is copied here.
  void exchangeBlocks(const char *send, char *receive) {
    const char *own = send + flat.sent.offsets[p] * bytes;
    char *place = receive + flat.got.offsets[p] * bytes;
    if (size_t size = size_t(flat.got.counts[p] * bytes); size > 0 && own != place)
      std::memcpy(place, own, size);
    flat.sent.counts[p] = flat.got.counts[p] = 0;
    shardrt_transfer t = begin(SHARDRT_ALL_TO_ALL, send, receive);
    t.send_counts = flat.sent.counts.data();
    t.send_offsets = flat.sent.offsets.data();
    t.receive_counts = flat.got.counts.data();
    t.receive_offsets = flat.got.offsets.data();
    flat.transfer(t, deadline);
  }

  /// The blocks of flat.got, of which the own one is at `send`, on every member.
  void gatherBlocks(const char *send, char *receive) {
    int64_t own = flat.got.counts[p];
    if (offers(SHARDRT_ALL_GATHER)) {
      shardrt_transfer t = begin(SHARDRT_ALL_GATHER, send, receive);
      t.count = own;
      t.receive_counts = flat.got.counts.data();
      t.receive_offsets = flat.got.offsets.data();
      flat.transfer(t, deadline);
      return;
    }
    flat.sent.counts.assign(n, own);
    flat.sent.offsets.assign(n, 0);
    exchangeBlocks(send, receive);
  }

  /// Whether pieces of a dim are dense ranges of a dense tensor.
  bool isOuter(const Extents &shape, int32_t dim) const {
    return countElements(shape.data(), size_t(dim)) <= 1;
  }

  /// Copies the piece of a dense tensor that begins at index `from` on `dim` into a dense block, or
  /// back.
  enum class Way : uint8_t { Pack, Unpack };
  void copyPiece(Way way, char *tensor, const Extents &shape, int32_t dim, int64_t from,
                 char *block, const Extents &box) const {
    Extents strides, boxStrides;
    denseStrides({shape.data(), rank}, strides.data());
    denseStrides({box.data(), rank}, boxStrides.data());
    if (countElements(box.data(), rank) == 0)
      return;
    char *piece = tensor + from * strides[size_t(dim)] * bytes;
    if (way == Way::Pack)
      copyBox(block, boxStrides.data(), piece, strides.data(), {box.data(), rank}, bytes);
    else
      copyBox(piece, strides.data(), block, boxStrides.data(), {box.data(), rank}, bytes);
  }

  /// Where the pieces of a tensor of `shape`, cut along `dim` into `pieces`, are blocks one after
  /// the other: the tensor itself, or memory for them.
  char *blocksOf(char *tensor, const Extents &shape, int32_t dim, int64_t total, Buffer &memory) {
    if (isOuter(shape, dim))
      return tensor;
    memory.reserve({}, size_t(total * bytes), packAlignment, "blocks of a collective");
    return reinterpret_cast<char *>(memory.data());
  }
  void copyPieces(Way way, char *tensor, Extents shape, int32_t dim,
                  const std::vector<int64_t> &pieces, char *blocks) const {
    if (blocks == tensor)
      return;
    int64_t from = 0;
    Extents box = shape;
    for (int64_t piece : pieces) {
      box[size_t(dim)] = piece;
      copyPiece(way, tensor, shape, dim, from, blocks, box);
      blocks += countElements(box.data(), rank) * bytes;
      from += piece;
    }
  }
  /// Elements of the pieces of such a tensor.
  void countPieces(Extents shape, int32_t dim, const std::vector<int64_t> &pieces,
                   std::vector<int64_t> &counts) const {
    counts.clear();
    for (int64_t piece : pieces) {
      shape[size_t(dim)] = piece;
      counts.push_back(countElements(shape.data(), rank));
    }
  }

  void allGather() {
    int32_t dim = o.facts->gather_dim;
    countPieces(o.extents, dim, o.gather, flat.got.counts);
    int64_t total = lineUp(flat.got);
    char *to = blocksOf(out(), o.extents, dim, total, flat.received);
    gatherBlocks(in(), to);
    copyPieces(Way::Unpack, out(), o.extents, dim, o.gather, to);
  }

  /// Packs what goes to each member along the scatter dim, and lines flat.sent up.
  const char *packScattered(const Extents &shape) {
    int32_t dim = o.facts->scatter_dim;
    countPieces(shape, dim, o.scatter, flat.sent.counts);
    int64_t total = lineUp(flat.sent);
    char *input = const_cast<char *>(in());
    char *from = blocksOf(input, shape, dim, total, flat.packed);
    copyPieces(Way::Pack, input, shape, dim, o.scatter, from);
    return from;
  }

  void allToAll() {
    const char *from = packScattered(o.inShape(p));
    Extents shape = o.outShape(p, c);
    int32_t dim = o.facts->gather_dim;
    countPieces(shape, dim, o.gather, flat.got.counts);
    int64_t total = lineUp(flat.got);
    char *to = blocksOf(out(), shape, dim, total, flat.received);
    exchangeBlocks(from, to);
    copyPieces(Way::Unpack, out(), shape, dim, o.gather, to);
  }

  /// Of the blocks flat.sent at `from` of all members, the own one, reduced in order of positions.
  void reduceBlocks(const char *from, char *result) {
    int64_t own = flat.sent.counts[p];
    const char *mine = from + flat.sent.offsets[p] * bytes;
    flat.received.reserve({}, size_t(own * n * bytes), packAlignment, "blocks of a collective");
    char *others = reinterpret_cast<char *>(flat.received.data());
    flat.got.counts.assign(n, own);
    lineUp(flat.got);
    // The own block is read where it is.
    flat.sent.counts[p] = flat.got.counts[p] = 0;
    exchangeBlocks(from, others);
    if (own == 0)
      return;
    std::vector<const void *> sources;
    for (uint32_t q = 0; q < n; ++q)
      sources.push_back(q == p ? mine : others + flat.got.offsets[q] * bytes);
    void *destination = result;
    reduceFunction(o.facts->type, c.reduction)(sources, {&destination, 1}, size_t(own));
  }

  void reduceScatter() {
    const char *from = packScattered(o.extents);
    if (!offers(SHARDRT_REDUCE_SCATTER))
      return reduceBlocks(from, out());
    shardrt_transfer t = begin(SHARDRT_REDUCE_SCATTER, from, out());
    t.reduction = int32_t(c.reduction);
    t.send_counts = flat.sent.counts.data();
    t.send_offsets = flat.sent.offsets.data();
    t.count = flat.sent.counts[p];
    flat.transfer(t, deadline);
  }

  void allReduce() {
    int64_t count = o.inElements(p);
    if (offers(SHARDRT_ALL_REDUCE)) {
      shardrt_transfer t = begin(SHARDRT_ALL_REDUCE, in(), out());
      t.reduction = int32_t(c.reduction);
      t.count = count;
      flat.transfer(t, deadline);
      return;
    }
    // Each member reduces one range, then all get all ranges.
    chunkExtents(count, n, flat.sent.counts);
    lineUp(flat.sent);
    char *own = out() + flat.sent.offsets[p] * bytes;
    reduceBlocks(in(), own);
    chunkExtents(count, n, flat.got.counts);
    lineUp(flat.got);
    gatherBlocks(own, out());
  }

  void copyWhole(int64_t count) const {
    if (count > 0 && in() != out())
      std::memcpy(out(), in(), size_t(count * bytes));
  }

  void broadcast() {
    int64_t count = o.inElements(p);
    if (offers(SHARDRT_BROADCAST)) {
      shardrt_transfer t = begin(SHARDRT_BROADCAST, p == c.root ? in() : nullptr, out());
      t.root = int32_t(c.root);
      t.count = count;
      flat.transfer(t, deadline);
      return;
    }
    flat.sent.counts.assign(n, p == c.root ? count : 0);
    flat.sent.offsets.assign(n, 0);
    flat.got.counts.assign(n, 0);
    flat.got.counts[c.root] = count;
    flat.got.offsets.assign(n, 0);
    exchangeBlocks(in(), out());
  }

  void permute() {
    int64_t source = permuteSource(c, p);
    flat.sent.counts.assign(n, 0);
    flat.sent.offsets.assign(n, 0);
    flat.got.counts.assign(n, 0);
    flat.got.offsets.assign(n, 0);
    int64_t count = o.outElements(p, c);
    if (source >= 0)
      flat.got.counts[size_t(source)] = count;
    else if (count > 0)
      std::memset(out(), 0, size_t(count * bytes));
    for (uint32_t i = 0; i < c.n_pairs; ++i)
      if (c.permutation[2 * i] == p)
        flat.sent.counts[c.permutation[2 * i + 1]] = o.inElements(p);
    exchangeBlocks(in(), out());
  }
};

/// Before the data of exchanges moves, members tell each other how much is to come: no library
/// finds out what does not fit, and some hang.
class FlatTransport::CountCheck {
public:
  CountCheck(FlatTransport &flat, const CollectiveCall &call, Signature &signature)
      : flat(flat), call(call), group(*call.group), n(group.size()), p(group.position) {
    for (size_t i = 0; i < call.operands.size(); ++i)
      if (call.operands[i].isExchange())
        exchanges.push_back(i);
    signature.add(uint64_t(exchanges.size()));
    hash = signature.value();
  }

  void run(Clock::time_point deadline) {
    // For each member: what it gets of me and what I expect of it, of all operands.
    size_t width = 2 * exchanges.size();
    std::vector<int64_t> said(n * width), heard(n * width);
    for (uint32_t q = 0; q < n; ++q)
      for (size_t k = 0; k < exchanges.size(); ++k) {
        const CallOperand &o = call.operands[exchanges[k]];
        said[q * width + 2 * k] = o.scatter[q];
        said[q * width + 2 * k + 1] = o.gather[q];
      }
    std::vector<int64_t> counts(n, int64_t(width)), offsets(n);
    counts[p] = 0;
    for (uint32_t q = 0; q < n; ++q)
      offsets[q] = int64_t(q * width);
    shardrt_transfer t = flat.begin(call, SHARDRT_ALL_TO_ALL, SHARDRT_I64, hash);
    t.send = said.data();
    t.receive = heard.data();
    t.send_counts = t.receive_counts = counts.data();
    t.send_offsets = t.receive_offsets = offsets.data();
    flat.transfer(t, deadline);
    for (uint32_t q = 0; q < n; ++q)
      for (size_t k = 0; q != p && k < exchanges.size(); ++k)
        compare(exchanges[k], q, &said[q * width + 2 * k], &heard[q * width + 2 * k]);
  }

private:
  void compare(size_t operand, uint32_t q, const int64_t *mine, const int64_t *theirs) {
    uint32_t self = group.members[p], other = group.members[q];
    for (const std::string &problem : {countDifference(operand, self, mine[0], other, theirs[1]),
                                       countDifference(operand, other, theirs[0], self, mine[1])})
      if (!problem.empty())
        flat.disagree(*call.collective, problem);
  }

  FlatTransport &flat;
  const CollectiveCall &call;
  const Group &group;
  const uint32_t n, p;
  std::vector<size_t> exchanges;
  uint64_t hash;
};

void FlatTransport::gather(const CollectiveCall &call, shardrt_type type, const void *mine,
                           const std::vector<int64_t> &counts, void *all, uint64_t signature,
                           Clock::time_point deadline) {
  const uint32_t n = call.group->size(), p = call.group->position;
  std::vector<int64_t> offsets(n), none(n), others = counts, own(n, counts[p]);
  std::partial_sum(counts.begin(), counts.end() - 1, offsets.begin() + 1);
  bool native = offers(SHARDRT_ALL_GATHER, type, SHARDRT_REDUCE_NONE);
  shardrt_transfer t =
      begin(call, native ? SHARDRT_ALL_GATHER : SHARDRT_ALL_TO_ALL, type, signature);
  t.send = mine;
  t.receive = all;
  t.receive_counts = counts.data();
  t.receive_offsets = offsets.data();
  if (native) {
    t.count = counts[p];
  } else {
    if (counts[p] > 0)
      std::memcpy(static_cast<char *>(all) + offsets[p] * typeBytes(type), mine,
                  size_t(counts[p] * typeBytes(type)));
    own[p] = others[p] = 0;
    t.send_counts = own.data();
    t.send_offsets = none.data();
    t.receive_counts = others.data();
  }
  transfer(t, deadline);
}

Clock::time_point FlatTransport::run(const CollectiveCall &call, Clock::time_point deadline) {
  if (call.group->size() == 1) {
    const CollectiveCall *alone = &call;
    performShare({&alone, 1}, 0);
    return Clock::now();
  }
  Signature signature(call);
  meet(call, signature.value(), deadline);
  if (hasExchange(call))
    CountCheck(*this, call, signature).run(deadline);
  for (size_t i = 0; i < call.operands.size(); ++i)
    Operand(*this, call, i, signature, deadline).perform();
  return Clock::now();
}

} // namespace shardc::rt
