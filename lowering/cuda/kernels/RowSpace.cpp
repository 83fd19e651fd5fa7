// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/kernels/RowSpace.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;

namespace shardc::cuda {

class RowSpace::Analysis {
public:
  /// `sharedMemory`: loops are also one dim where they index the same dim of an argument. It is
  /// what makes the rows of one op those of another; but an op that reads an argument along two
  /// dims has a dim twice then.
  Analysis(const KernelStage &stage, RowSpace &space, bool sharedMemory)
      : stage(stage), space(space), sharedMemory(sharedMemory) {}

  bool run() {
    if (!number() || !divide() || !findReductions() || !findResults())
      return false;
    orderDims();
    findKept();
    return true;
  }

private:
  bool number();
  bool unite(linalg::LinalgOp op, OpOperand &operand);
  bool divide();
  bool findReductions();
  bool findResults();
  void orderDims();
  void findKept();
  void visit(const ElementAccess &access, unsigned pass);
  void visitOperands(linalg::LinalgOp op, ArrayRef<int> loops, unsigned pass);
  unsigned levelOf(Value value);
  unsigned levelOfOperands(linalg::LinalgOp op);

  unsigned find(unsigned dim) {
    while (parent[dim] != dim)
      dim = parent[dim] = parent[parent[dim]];
    return dim;
  }
  void join(unsigned a, unsigned b) {
    a = find(a), b = find(b);
    if (a == b)
      return;
    parent[b] = a;
    if (ShapedType::isDynamic(provisional[a]))
      provisional[a] = provisional[b];
  }
  bool isOne(int dim) const { return dim == kNoDim || space.extents[dim] == 1; }
  /// The dims, without those of one element and without order; no value where one is there twice.
  std::optional<llvm::SmallBitVector> setOf(ArrayRef<int> dims) const {
    llvm::SmallBitVector set(space.extents.size());
    for (int dim : dims) {
      if (isOne(dim))
        continue;
      if (set.test(dim))
        return std::nullopt;
      set.set(dim);
    }
    return set;
  }

  const KernelStage &stage;
  RowSpace &space;
  bool sharedMemory;
  SmallVector<unsigned> parent;
  SmallVector<int64_t> provisional;
  SmallVector<std::pair<linalg::LinalgOp, unsigned>> loopOf;
  DenseMap<Operation *, unsigned> firstLoop;
  llvm::SmallBitVector outerSet, innerSet;
  DenseMap<Value, unsigned> levels;
  std::map<ElementAccess, unsigned> evaluated;
};

static bool isReduced(linalg::LinalgOp op, unsigned loop) {
  return op.getIteratorTypesArray()[loop] == utils::IteratorType::reduction;
}

/// Loops that index the same dim of a value of the stage are one dim.
bool RowSpace::Analysis::unite(linalg::LinalgOp op, OpOperand &operand) {
  auto result = cast<OpResult>(operand.get());
  auto producer = cast<linalg::LinalgOp>(result.getOwner());
  AffineMap written = producer.getIndexingMapMatchingResult(result);
  AffineMap read = op.getMatchingIndexingMap(&operand);
  unsigned ofProducer = firstLoop.lookup(producer), ofReader = firstLoop.lookup(op);
  for (auto [from, to] : llvm::zip_equal(written.getResults(), read.getResults())) {
    auto source = dyn_cast<AffineDimExpr>(from), target = dyn_cast<AffineDimExpr>(to);
    if (source && target) {
      unsigned a = find(ofProducer + source.getPosition()),
               b = find(ofReader + target.getPosition());
      join(a, b);
      continue;
    }
    // Position 0 of a dim of one element.
    AffineDimExpr only = source ? source : target;
    if (only && provisional[find((source ? ofProducer : ofReader) + only.getPosition())] != 1)
      return false;
  }
  return true;
}

bool RowSpace::Analysis::number() {
  FusedKernel &kernel = stage.kernel;
  DenseMap<unsigned, unsigned> firstOf; // of the kernel's dims
  for (linalg::LinalgOp op : stage.ops) {
    firstLoop[op] = parent.size();
    for (auto [loop, dim] : llvm::enumerate(kernel.dims().loopsOf(op))) {
      parent.push_back(parent.size());
      provisional.push_back(kernel.staticExtent(dim));
      loopOf.push_back({op, static_cast<unsigned>(loop)});
      auto [it, inserted] = firstOf.try_emplace(dim, parent.size() - 1);
      if (sharedMemory)
        join(it->second, parent.size() - 1);
    }
    for (OpOperand &operand : op->getOpOperands())
      if (stage.contains(operand.get()) && !unite(op, operand))
        return false;
    bool looksUpOwn = false;
    op->walk([&](tensor::ExtractOp extract) {
      looksUpOwn = looksUpOwn || stage.contains(extract.getTensor());
    });
    if (looksUpOwn)
      return false;
  }
  DenseMap<unsigned, int> numbers;
  for (linalg::LinalgOp op : stage.ops)
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
      unsigned root = find(firstLoop.lookup(op) + loop);
      auto [it, inserted] = numbers.try_emplace(root, static_cast<int>(numbers.size()));
      if (inserted) {
        space.extents.push_back(provisional[root]);
        space.sources.push_back(loopOf[root]);
      }
      space.loops[op].push_back(it->second);
    }
  // The loops of an op may have become one after they were numbered.
  for (linalg::LinalgOp op : stage.ops) {
    space.loops[op]; // an op without loops
    if (!setOf(space.loops[op]))
      return false;
  }
  return true;
}

/// Rows and positions.
bool RowSpace::Analysis::divide() {
  bool first = true;
  for (linalg::LinalgOp op : stage.ops) {
    if (isPointwise(op))
      continue;
    SmallVector<int> kept, reduced;
    for (auto [loop, dim] : llvm::enumerate(space.loops[op]))
      (isReduced(op, loop) ? reduced : kept).push_back(dim);
    if (first) {
      outerSet = *setOf(kept);
      innerSet = *setOf(reduced);
    }
    if (*setOf(kept) != outerSet || *setOf(reduced) != innerSet)
      return false;
    first = false;
  }
  return !first;
}

unsigned RowSpace::Analysis::levelOfOperands(linalg::LinalgOp op) {
  unsigned level = 0;
  for (OpOperand &operand : op->getOpOperands())
    if (stage.contains(operand.get()) && op.payloadUsesValueFromOperand(&operand))
      level = std::max(level, levelOf(operand.get()));
  return level;
}

unsigned RowSpace::Analysis::levelOf(Value value) {
  auto it = levels.find(value);
  if (it != levels.end())
    return it->second;
  auto op = cast<linalg::LinalgOp>(value.getDefiningOp());
  unsigned level = levelOfOperands(op) + (isPointwise(op) ? 0 : 1);
  return levels[value] = level;
}

bool RowSpace::Analysis::findReductions() {
  for (linalg::LinalgOp op : stage.ops) {
    for (Operation &inner : op->getRegion(0).front())
      space.opCount += &inner != op->getRegion(0).front().getTerminator();
    if (isPointwise(op))
      continue;
    auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
    if (!generic)
      return false;
    FailureOr<ReductionCombiner> combiner = ReductionCombiner::match(generic);
    if (failed(combiner))
      return false;
    if (combiner->results().size() != op->getNumResults())
      space.scan = true;
    for (unsigned number : combiner->results())
      for (AffineExpr expr :
           generic.getIndexingMapMatchingResult(op->getResult(number)).getResults())
        if (auto loop = dyn_cast<AffineDimExpr>(expr); loop && isReduced(op, loop.getPosition()))
          return false; // the accumulator is an element of each step
    unsigned pass = levelOfOperands(op);
    space.allReductions.push_back({generic, *combiner, pass});
    space.passCount = std::max(space.passCount, pass + 1);
  }
  return true;
}

bool RowSpace::Analysis::findResults() {
  for (OpResult value : stage.stored) {
    auto op = cast<linalg::LinalgOp>(value.getOwner());
    RowResult result{value, {value, {}}, 0, false};
    for (AffineExpr expr : op.getIndexingMapMatchingResult(value).getResults()) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      result.access.dims.push_back(loop ? space.loops[op][loop.getPosition()] : kNoDim);
    }
    std::optional<llvm::SmallBitVector> set = setOf(result.access.dims);
    if (!set || (*set & outerSet) != outerSet)
      return false;
    set->reset(outerSet);
    result.hasPositions = set->any();
    if (result.hasPositions && *set != innerSet)
      return false;
    // Where a row has one position, whoever computes it stores it.
    result.pass = levelOf(value);
    if (space.scan && !isPointwise(op)) {
      bool isState = false;
      for (const RowReduction &reduction : space.allReductions)
        if (reduction.op == op)
          isState = llvm::is_contained(reduction.combiner.results(), value.getResultNumber());
      if (!isState) {
        result.hasPositions = true;
        result.pass -= 1;
      }
    }
    if (result.hasPositions)
      space.passCount = std::max(space.passCount, result.pass + 1);
    space.allResults.push_back(result);
  }
  return true;
}

/// From the slowest in memory to the fastest, where the access says it.
static SmallVector<int> inMemoryOrder(const KernelStage &stage, const ElementAccess &access) {
  SmallVector<unsigned> order;
  for (unsigned i = 0; i < access.dims.size(); ++i)
    order.push_back(i);
  Value memory = stage.kernel.placeOf(access.tensor);
  SmallVector<int64_t> strides;
  int64_t offset;
  if (memory &&
      succeeded(cast<MemRefType>(memory.getType()).getStridesAndOffset(strides, offset)) &&
      llvm::none_of(strides, ShapedType::isDynamic))
    llvm::sort(order, [&](unsigned a, unsigned b) {
      return strides[a] != strides[b] ? strides[a] > strides[b] : a < b;
    });
  SmallVector<int> dims;
  for (unsigned position : order)
    dims.push_back(access.dims[position]);
  return dims;
}

void RowSpace::Analysis::orderDims() {
  for (const RowReduction &reduction : space.allReductions)
    collectReads(stage, reduction.op, space.loops[reduction.op], space.allReads);
  for (const RowResult &result : space.allResults)
    collectReads(stage, result.access, space.allReads);
  // The access to most dims decides.
  unsigned most = 0;
  auto consider = [&](const ElementAccess &access) {
    std::optional<llvm::SmallBitVector> set = setOf(access.dims);
    if (set && set->count() > most) {
      most = set->count();
      space.leader = access;
    }
  };
  for (const ElementAccess &access : space.allReads)
    consider(access);
  for (const RowResult &result : space.allResults)
    consider(result.access);
  SmallVector<int> order;
  if (space.leader.tensor)
    order = inMemoryOrder(stage, space.leader);
  llvm::erase_if(order, [&](int dim) { return isOne(dim); });
  auto fill = [&](const llvm::SmallBitVector &set, SmallVectorImpl<int> &dims) {
    for (int dim : set.set_bits())
      if (!llvm::is_contained(order, dim))
        dims.push_back(dim);
    for (int dim : order)
      if (set.test(dim))
        dims.push_back(dim);
  };
  fill(outerSet, space.outerDims);
  fill(innerSet, space.innerDims);
  space.columns = !order.empty() && outerSet.test(order.back());
}

void RowSpace::Analysis::visitOperands(linalg::LinalgOp op, ArrayRef<int> loops, unsigned pass) {
  for (OpOperand &operand : op->getOpOperands())
    if (isa<RankedTensorType>(operand.get().getType()) &&
        op.payloadUsesValueFromOperand(&operand) && !(op.isDpsInit(&operand) && !isPointwise(op)))
      visit(accessOf(op, operand, loops), pass);
}

void RowSpace::Analysis::visit(const ElementAccess &access, unsigned pass) {
  if (space.isOfRow(access) || stage.kernel.isConstant(access.tensor))
    return;
  auto [it, inserted] = evaluated.try_emplace(access, pass);
  if (!inserted) {
    if (it->second < pass)
      space.keptElements[access] = it->second;
    return;
  }
  if (!isComputedInPlace(stage, access.tensor))
    return;
  auto result = cast<OpResult>(access.tensor);
  visitOperands(cast<linalg::LinalgOp>(result.getOwner()), loopsFor(result, access.dims), pass);
}

void RowSpace::Analysis::findKept() {
  for (unsigned pass = 0; pass < space.passCount; ++pass) {
    for (const RowReduction &reduction : space.allReductions)
      if (reduction.pass == pass)
        visitOperands(reduction.op, space.loops[reduction.op], pass);
    for (const RowResult &result : space.allResults)
      if (result.hasPositions && result.pass == pass && !space.isReduction(result.value))
        visit(result.access, pass);
  }
}

std::optional<RowSpace> RowSpace::analyze(const KernelStage &stage) {
  for (bool sharedMemory : {true, false}) {
    RowSpace space;
    if (Analysis(stage, space, sharedMemory).run())
      return space;
  }
  return std::nullopt;
}

bool RowSpace::isOfRow(const ElementAccess &access) const {
  return llvm::none_of(access.dims, [&](int dim) { return isInner(dim); });
}

bool RowSpace::isReduction(Value value) const {
  return llvm::any_of(allReductions, [&](const RowReduction &reduction) {
    return reduction.op == value.getDefiningOp();
  });
}

int64_t RowSpace::productOf(ArrayRef<int> dims) const {
  int64_t product = 1;
  for (int dim : dims) {
    if (ShapedType::isDynamic(extents[dim]))
      return kUnknownSize;
    product *= extents[dim];
  }
  return product;
}

OpFoldResult RowSpace::extentOf(FusedKernel &kernel, int dim) const {
  if (!ShapedType::isDynamic(extents[dim]))
    return Builder(kernel.getFunction().getContext()).getIndexAttr(extents[dim]);
  auto [op, loop] = sources[dim];
  return kernel.loopExtents(op)[loop];
}

} // namespace shardc::cuda
