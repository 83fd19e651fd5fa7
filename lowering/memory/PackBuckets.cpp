// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/BufferLifetimes.h"
#include "lowering/memory/CopyKernel.h"
#include "lowering/memory/EntryVariants.h"
#include "lowering/memory/Passes.h"
#include "lowering/memory/core/PackedBucket.h"
#include "lowering/target/Target.h"

#include "dialects/dist/Dist.h"
#include "dialects/dist/FunctionAttributes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

#include "llvm/ADT/SetVector.h"

#include <numeric>

namespace shardc::memory {
#define GEN_PASS_DEF_PACKBUCKETS
#include "lowering/memory/Passes.h.inc"
} // namespace shardc::memory

using namespace mlir;
using namespace shardc;
using namespace shardc::memory;

namespace {

/// Which side of a collective is made of the parts of all ranks.
enum class WholeSide { None, Output, Input };

/// Nothing for kinds that are never packed.
std::optional<WholeSide> wholeSideOf(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllReduce:
  case CollectiveKind::Broadcast:
    return WholeSide::None;
  case CollectiveKind::AllGather:
    return WholeSide::Output;
  case CollectiveKind::ReduceScatter:
    return WholeSide::Input;
  case CollectiveKind::AllToAll:
  case CollectiveKind::Permute:
    return std::nullopt;
  }
  return std::nullopt;
}

MemRefType memrefOf(Value value) { return cast<MemRefType>(value.getType()); }

/// Offset of a dense memref from its buffer; nothing where it is not static or not dense.
std::optional<int64_t> denseOffset(Value value) {
  MemRefType type = memrefOf(value);
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!type.hasStaticShape() || failed(type.getStridesAndOffset(strides, offset)) ||
      ShapedType::isDynamic(offset))
    return std::nullopt;
  if (type.getNumElements() == 0)
    return offset;
  int64_t expected = 1;
  for (int64_t dim = type.getRank(); dim-- > 0;) {
    if (type.getDimSize(dim) != 1 && strides[dim] != expected)
      return std::nullopt;
    expected *= type.getDimSize(dim);
  }
  return offset;
}

Value viewOf(OpBuilder &b, Location loc, Value buffer, int64_t offset, ArrayRef<int64_t> sizes,
             ArrayRef<int64_t> strides) {
  auto layout = StridedLayoutAttr::get(b.getContext(), offset, strides);
  auto type = MemRefType::get(sizes, memrefOf(buffer).getElementType(), layout);
  return memref::ReinterpretCastOp::create(b, loc, type, buffer, offset, sizes, strides);
}

Value denseViewOf(OpBuilder &b, Location loc, Value buffer, int64_t offset,
                  ArrayRef<int64_t> sizes) {
  return viewOf(b, loc, buffer, offset, sizes, computeStrides(sizes));
}

/// The buffer of `value`, if all of it is `value` and it can be moved into another one.
exec::AllocOp movableBuffer(Value value) {
  auto alloc = bufferOf(value).getDefiningOp<exec::AllocOp>();
  if (!alloc || alloc.getOffset() || alloc.getSlot() || denseOffset(value) != 0 ||
      !alloc.getBuffer().getType().hasStaticShape() ||
      alloc.getBuffer().getType().getNumElements() != memrefOf(value).getNumElements())
    return {};
  for (Operation *user : alloc->getUsers()) {
    if (!isa<ViewLikeOpInterface>(user))
      continue;
    auto view = dyn_cast<memref::ReinterpretCastOp>(user);
    if (!view || ShapedType::isDynamic(view.getStaticOffsets().front()) ||
        llvm::any_of(view->getUsers(), llvm::IsaPred<ViewLikeOpInterface>))
      return {};
  }
  return alloc;
}

/// What an op does with `memory`, by itself or through a view that it is, it does from element
/// `offset` of `bucket` on. An op that has the memory twice works in place still.
void moveUser(Operation *user, Value memory, Value bucket, int64_t offset) {
  OpBuilder b(user);
  auto view = dyn_cast<memref::ReinterpretCastOp>(user);
  if (!view) {
    user->replaceUsesOfWith(
        memory, denseViewOf(b, user->getLoc(), bucket, offset, memrefOf(memory).getShape()));
    return;
  }
  int64_t from = offset + view.getStaticOffsets().front();
  auto layout = StridedLayoutAttr::get(b.getContext(), from, view.getStaticStrides());
  auto type = MemRefType::get(view.getType().getShape(), view.getType().getElementType(), layout);
  Value moved =
      memref::ReinterpretCastOp::create(b, view.getLoc(), type, bucket, b.getIndexAttr(from),
                                        view.getMixedSizes(), view.getMixedStrides());
  view.getResult().replaceAllUsesWith(moved);
  view.erase();
}

/// Everything that `alloc` was for happens from element `offset` of `bucket` on.
void moveInto(exec::AllocOp alloc, Value bucket, int64_t offset) {
  for (Operation *user : llvm::SetVector<Operation *>(alloc->user_begin(), alloc->user_end()))
    moveUser(user, alloc.getBuffer(), bucket, offset);
  alloc.erase();
}

/// The users of a caller's memory in front of `op`, which works in place on all of it. Nothing
/// where what they do cannot happen elsewhere.
std::optional<llvm::SetVector<Operation *>> usersBefore(Operation *op, Value value) {
  if (!isa<BlockArgument>(value) || !memrefOf(value).hasStaticShape())
    return std::nullopt;
  llvm::SetVector<Operation *> users;
  for (Operation *user : value.getUsers()) {
    if (!user->isBeforeInBlock(op))
      continue;
    auto isBefore = [&](Operation *reader) {
      return !isa<ViewLikeOpInterface>(reader) && reader->isBeforeInBlock(op);
    };
    if (isa<ViewLikeOpInterface>(user)) {
      auto view = dyn_cast<memref::ReinterpretCastOp>(user);
      if (!view || ShapedType::isDynamic(view.getStaticOffsets().front()) ||
          !llvm::all_of(user->getUsers(), isBefore))
        return std::nullopt;
    }
    users.insert(user);
  }
  return users;
}

/// What packing copies on this rank.
struct PackingCost {
  int64_t copiedBytes = 0; // between tensors and packed buffers, each counted once
  int64_t launches = 0;
  int64_t inPlaceBytes = 0; // of tensors that are computed or used in the packed buffer itself
};

/// One variadic collective.
class Bucket {
public:
  virtual ~Bucket() = default;
  /// Nothing where it cannot be one collective on a vector.
  virtual std::optional<PackingCost> analyze() = 0;
  virtual void pack() = 0;
  virtual size_t tensorCount() = 0;
};

/// `Op` is the form that runs to its end, or the one that is waited for.
template <typename Op> class BucketOf : public Bucket {
public:
  BucketOf(Op op, SymbolTable &symbols) : op(op), symbols(symbols) {}

  std::optional<PackingCost> analyze() override;
  void pack() override;
  size_t tensorCount() override { return op.getInputs().size(); }

private:
  BucketTensor describe(unsigned i);
  int64_t elementBytes() {
    return llvm::divideCeil(memrefOf(op.getInputs()[0]).getElementTypeBitWidth(), 8);
  }
  void account(ValueRange side, llvm::SmallPtrSetImpl<Operation *> &moved);
  void accountInPlace();
  Value allocate(int64_t elements);
  Value packSide(ValueRange tensors, bool isInput);
  Value packWhole(ValueRange tensors, bool isInput);
  Value packInPlace();
  void copy(Value packed, Value tensor, const BucketCopy &block, bool isInput);

  Op op;
  SymbolTable &symbols;
  WholeSide whole = WholeSide::None;
  bool inPlace = false;     // each tensor is delivered where it is read
  Operation *end = nullptr; // after it the results are there
  PackedBucket layout;
  PackingCost cost;
  // What comes behind the end may be moved away: copies stand behind one another.
  Operation *lastCopy = nullptr;
  llvm::SmallPtrSet<Operation *, 2> made; // packed buffers
};

template <typename Op> BucketTensor BucketOf<Op>::describe(unsigned i) {
  auto listAt = [&](ArrayAttr lists) { return cast<DenseI64ArrayAttr>(lists[i]).asArrayRef(); };
  if (whole == WholeSide::None)
    return {1, memrefOf(op.getInputs()[i]).getNumElements(), {1}};
  bool gathers = whole == WholeSide::Output;
  int64_t dim = gathers ? op.getGatherDims()[i] : op.getScatterDims()[i];
  ArrayRef<int64_t> full = listAt(op.getExtents());
  ArrayRef<int64_t> given = listAt(gathers ? op.getGatherExtents() : op.getScatterExtents());
  auto product = [](ArrayRef<int64_t> sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
  };
  return {product(full.take_front(dim)), product(full.drop_front(dim + 1)),
          given.empty() ? chunkExtents(full[dim], op.getGroup().getGroupSize())
                        : std::vector<int64_t>(given.begin(), given.end())};
}

template <typename Op>
void BucketOf<Op>::account(ValueRange side, llvm::SmallPtrSetImpl<Operation *> &moved) {
  for (Value tensor : side) {
    exec::AllocOp alloc = movableBuffer(tensor);
    bool moves = alloc && moved.insert(alloc).second;
    (moves ? cost.inPlaceBytes : cost.copiedBytes) +=
        memrefOf(tensor).getNumElements() * elementBytes();
    cost.launches += !moves;
  }
}

template <typename Op> void BucketOf<Op>::accountInPlace() {
  for (Value tensor : op.getInputs()) {
    int64_t bytes = memrefOf(tensor).getNumElements() * elementBytes();
    bool moves = movableBuffer(tensor) != nullptr;
    int64_t copies = moves ? 0 : usersBefore(op, tensor) ? 1 : 2;
    cost.inPlaceBytes += moves ? bytes : 0;
    cost.copiedBytes += copies * bytes;
    cost.launches += copies;
  }
}

template <typename Op> std::optional<PackingCost> BucketOf<Op>::analyze() {
  std::optional<WholeSide> side = wholeSideOf(op.getKind());
  if (!side || !op.getSizes().empty())
    return std::nullopt;
  whole = *side;
  end = op;
  if constexpr (std::is_same_v<Op, exec::StartOp>) {
    // Without a wait here somebody else waits, who knows nothing of copies.
    if (!op.getToken().hasOneUse() || !isa<exec::WaitOp>(*op.getToken().user_begin()))
      return std::nullopt;
    end = *op.getToken().user_begin();
  }
  for (ValueRange tensors : {ValueRange(op.getInputs()), ValueRange(op.getOutputs())})
    for (Value tensor : tensors)
      if (!denseOffset(tensor) ||
          memrefOf(tensor).getElementType() != memrefOf(op.getInputs()[0]).getElementType())
        return std::nullopt;
  if (!llvm::all_equal(op.getElementTypes()))
    return std::nullopt;
  SmallVector<BucketTensor> tensors;
  for (unsigned i = 0; i < op.getInputs().size(); ++i)
    tensors.push_back(describe(i));
  layout = packBucket(tensors);
  llvm::SmallPtrSet<Operation *, 8> moved;
  inPlace = whole == WholeSide::None && llvm::equal(op.getInputs(), op.getOutputs());
  if (inPlace) {
    accountInPlace();
    return cost;
  }
  if (whole == WholeSide::None || whole == WholeSide::Output)
    account(op.getInputs(), moved);
  if (whole == WholeSide::None || whole == WholeSide::Input)
    account(op.getOutputs(), moved);
  if (whole != WholeSide::None) {
    cost.copiedBytes += layout.elements * elementBytes();
    cost.launches += layout.copies.size();
  }
  return cost;
}

/// At the start of the entry; the arena plan looks at uses, not at where it stands.
template <typename Op> Value BucketOf<Op>::allocate(int64_t elements) {
  OpBuilder b = OpBuilder::atBlockBegin(op->getBlock());
  auto type = MemRefType::get({elements}, memrefOf(op.getInputs()[0]).getElementType());
  auto alloc =
      exec::AllocOp::create(b, op.getLoc(), type, ValueRange(), IntegerAttr(), IntegerAttr());
  made.insert(alloc);
  return alloc;
}

/// This rank's side: tensors that are moved there, or copied.
template <typename Op> Value BucketOf<Op>::packSide(ValueRange tensors, bool isInput) {
  int64_t elements = 0;
  for (Value tensor : tensors)
    elements += memrefOf(tensor).getNumElements();
  Value packed = allocate(elements);
  int64_t offset = 0;
  for (unsigned i = 0; i < tensors.size(); ++i) {
    Value tensor = isInput ? op.getInputs()[i] : op.getOutputs()[i];
    int64_t size = memrefOf(tensor).getNumElements();
    // An output that is an input, too, is in the input's vector by now.
    exec::AllocOp alloc = movableBuffer(tensor);
    if (alloc && !made.contains(alloc)) {
      moveInto(alloc, packed, offset);
    } else if (size > 0) {
      BucketCopy block{i, {1, 1, 1, size}, offset, {size, size, size, 1}, 0, {size, size, size, 1}};
      copy(packed, tensor, block, isInput);
    }
    offset += size;
  }
  return packed;
}

/// The side of all ranks, where a tensor is in as many pieces as there are positions.
template <typename Op> Value BucketOf<Op>::packWhole(ValueRange tensors, bool isInput) {
  Value packed = allocate(layout.elements);
  for (const BucketCopy &block : layout.copies)
    copy(packed, tensors[block.tensor], block, isInput);
  return packed;
}

/// Tensors that are reduced where they are: in one packed buffer, from which the caller's get the
/// result.
template <typename Op> Value BucketOf<Op>::packInPlace() {
  int64_t elements = 0;
  for (Value tensor : op.getInputs())
    elements += memrefOf(tensor).getNumElements();
  Value packed = allocate(elements);
  int64_t offset = 0;
  for (unsigned i = 0; i < op.getInputs().size(); ++i) {
    Value tensor = op.getInputs()[i];
    int64_t size = memrefOf(tensor).getNumElements();
    BucketCopy block{i, {1, 1, 1, size}, offset, {size, size, size, 1}, 0, {size, size, size, 1}};
    if (exec::AllocOp alloc = movableBuffer(tensor)) {
      moveInto(alloc, packed, offset);
    } else if (size > 0) {
      if (std::optional<llvm::SetVector<Operation *>> users = usersBefore(op, tensor))
        for (Operation *user : *users)
          moveUser(user, tensor, packed, offset);
      else
        copy(packed, tensor, block, /*isInput=*/true);
      copy(packed, tensor, block, /*isInput=*/false);
    }
    offset += size;
  }
  return packed;
}

template <typename Op>
void BucketOf<Op>::copy(Value packed, Value tensor, const BucketCopy &block, bool isInput) {
  OpBuilder b(op);
  if (!isInput)
    b.setInsertionPointAfter(lastCopy);
  Value inBucket =
      viewOf(b, op.getLoc(), packed, block.packedOffset, block.sizes, block.packedStrides);
  Value inTensor =
      viewOf(b, op.getLoc(), bufferOf(tensor), *denseOffset(tensor) + block.tensorOffset,
             block.sizes, block.tensorStrides);
  launchCopy(b, op.getLoc(), symbols, isInput ? inTensor : inBucket, isInput ? inBucket : inTensor);
  if (!isInput)
    lastCopy = &*std::prev(b.getInsertionPoint());
}

template <typename Op> void BucketOf<Op>::pack() {
  lastCopy = end;
  Value input, output;
  if (inPlace) {
    input = output = packInPlace();
  } else {
    input = whole == WholeSide::Input ? packWhole(op.getInputs(), true)
                                      : packSide(op.getInputs(), true);
    output = whole == WholeSide::Output ? packWhole(op.getOutputs(), false)
                                        : packSide(op.getOutputs(), false);
  }
  OpBuilder b(op);
  auto lists = [&](ArrayRef<int64_t> list) {
    return b.getArrayAttr({b.getDenseI64ArrayAttr(list)});
  };
  SmallVector<int64_t> parts;
  if (whole != WholeSide::None && !llvm::all_equal(layout.parts))
    parts.assign(layout.parts.begin(), layout.parts.end());
  bool gathers = whole == WholeSide::Output, scatters = whole == WholeSide::Input;
  op.getInputsMutable().assign(input);
  op.getOutputsMutable().assign(output);
  op.setElementTypesAttr(b.getArrayAttr({op.getElementTypes()[0]}));
  op.setExtentsAttr(lists(layout.elements));
  op.setGatherDimsAttr(b.getDenseI64ArrayAttr(gathers ? 0 : -1));
  op.setScatterDimsAttr(b.getDenseI64ArrayAttr(scatters ? 0 : -1));
  op.setGatherExtentsAttr(lists(gathers ? ArrayRef(parts) : ArrayRef<int64_t>()));
  op.setScatterExtentsAttr(lists(scatters ? ArrayRef(parts) : ArrayRef<int64_t>()));
}

struct PackBuckets : memory::impl::PackBucketsBase<PackBuckets> {
  using PackBucketsBase::PackBucketsBase;

  void runOnOperation() override {
    FailureOr<target::Limits> read = target::readLimits(getOperation());
    if (failed(read))
      return signalPassFailure();
    limits = *read;
    SymbolTable symbols(getOperation());
    for (ArrayRef<func::FuncOp> entries : groupVariants(getOperation())) {
      // Ranks with programs of their own have the same collectives in the same order; they must
      // agree on the form of each.
      llvm::MapVector<int64_t, SmallVector<std::unique_ptr<Bucket>>> buckets;
      for (func::FuncOp entry : entries)
        for (const auto &[ordinal, collective] : collectivesOf(entry))
          if (std::unique_ptr<Bucket> bucket = bucketOf(collective, symbols))
            buckets[ordinal].push_back(std::move(bucket));
      for (auto &[ordinal, list] : buckets)
        handle(llvm::to_vector(
            llvm::map_range(list, [](std::unique_ptr<Bucket> &bucket) { return bucket.get(); })));
    }
  }

  /// Null for a collective of one tensor.
  static std::unique_ptr<Bucket> bucketOf(exec::CollectiveCallInterface op, SymbolTable &symbols) {
    if (op.getInputs().size() < 2)
      return nullptr;
    if (auto start = dyn_cast<exec::StartOp>(op.getOperation()))
      return std::make_unique<BucketOf<exec::StartOp>>(start, symbols);
    return std::make_unique<BucketOf<exec::CollectiveOp>>(
        cast<exec::CollectiveOp>(op.getOperation()), symbols);
  }

  void handle(ArrayRef<Bucket *> variants) {
    SmallVector<PackingCost> costs;
    for (Bucket *bucket : variants)
      if (std::optional<PackingCost> cost = bucket->analyze())
        costs.push_back(*cost);
    if (form == BucketForm::Grouped || costs.size() < variants.size() ||
        !isWorthwhile(costs, variants.front()->tensorCount())) {
      grouped += variants.size();
      return;
    }
    for (Bucket *bucket : variants)
      bucket->pack();
    packed += variants.size();
    for (const PackingCost &cost : costs) {
      copiedBytes += cost.copiedBytes;
      inPlaceBytes += cost.inPlaceBytes;
    }
  }

  /// One tensor instead of many saves the target's `tensor_ns` each; the copies cost time and
  /// launches.
  /// The slowest rank counts.
  bool isWorthwhile(ArrayRef<PackingCost> costs, size_t tensors) {
    if (form == BucketForm::Packed)
      return true;
    return llvm::all_of(costs, [&](const PackingCost &cost) {
      return cost.copiedBytes / limits.copyBytesPerNs + limits.launchNs * cost.launches <
             limits.tensorNs * (tensors - 1);
    });
  }

  target::Limits limits;
};

} // namespace
