// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/kernels/LaunchDomain.h"

#include "lowering/cuda/Accesses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace shardc::cuda {

LaunchResult LaunchDomain::describe(OpResult value) const {
  LaunchResult result{value, {}};
  int next = 0;
  for (OpFoldResult size : stage->kernel.sizesOf(value))
    result.dims.push_back(isOneInteger(size) ? kNoDim : next++);
  return result;
}

/// The value as one with the loops of this domain: the same dims in the same order, or in another
/// where no dim is there twice.
std::optional<LaunchResult> LaunchDomain::fit(OpResult value) const {
  LaunchResult result = describe(value);
  ArrayRef<std::optional<unsigned>> dims = stage->kernel.dims().dimsOf(value);
  SmallVector<std::optional<unsigned>> numbers;
  for (auto [loop, dim] : llvm::zip_equal(result.dims, dims))
    if (loop != kNoDim)
      numbers.push_back(dim);
  if (llvm::is_contained(numbers, std::nullopt) || llvm::is_contained(kernelDims, std::nullopt))
    return std::nullopt;
  if (numbers == kernelDims)
    return result;
  SmallVector<std::optional<unsigned>> sorted(numbers), own(kernelDims);
  llvm::sort(sorted);
  llvm::sort(own);
  if (sorted != own || std::adjacent_find(own.begin(), own.end()) != own.end())
    return std::nullopt;
  for (int &loop : result.dims)
    if (loop != kNoDim)
      loop = llvm::find(kernelDims, numbers[loop]) - kernelDims.begin();
  return result;
}

std::vector<LaunchDomain> LaunchDomain::divide(const KernelStage &stage, OpBuilder &host) {
  std::vector<LaunchDomain> domains;
  for (OpResult value : stage.stored) {
    bool found = false;
    for (LaunchDomain &domain : domains)
      if (std::optional<LaunchResult> fitting = domain.fit(value)) {
        domain.results.push_back(*fitting);
        found = true;
        break;
      }
    if (found)
      continue;
    LaunchDomain &domain = domains.emplace_back();
    domain.stage = &stage;
    domain.results.push_back(domain.describe(value));
    auto dims = stage.kernel.dims().dimsOf(value);
    for (auto [position, size] : llvm::enumerate(stage.kernel.sizesOf(value))) {
      if (isOneInteger(size))
        continue;
      domain.extents.push_back(size);
      domain.kernelDims.push_back(dims[position]);
    }
  }
  for (LaunchDomain &domain : domains) {
    domain.orderLoops();
    domain.findPositions();
    domain.findAccesses();
    domain.collapse(host);
  }
  return domains;
}

/// The loop along which the first result has its neighbours in memory is the innermost one.
void LaunchDomain::orderLoops() {
  LaunchResult &first = results.front();
  ArrayRef<Value> places = stage->kernel.destinationsOf(first.value);
  if (places.empty())
    return;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(cast<MemRefType>(places.front().getType()).getStridesAndOffset(strides, offset)))
    return;
  SmallVector<int64_t> ofLoop(extents.size());
  for (auto [loop, stride] : llvm::zip_equal(first.dims, strides))
    if (loop != kNoDim)
      ofLoop[loop] = stride;
  if (llvm::any_of(ofLoop, ShapedType::isDynamic))
    return;
  SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, extents.size()));
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return std::pair(-ofLoop[a], a) < std::pair(-ofLoop[b], b);
  });
  SmallVector<int> number(order.size());
  SmallVector<OpFoldResult> oldExtents = extents;
  SmallVector<std::optional<unsigned>> oldDims = kernelDims;
  for (auto [now, before] : llvm::enumerate(order)) {
    number[before] = now;
    extents[now] = oldExtents[before];
    kernelDims[now] = oldDims[before];
  }
  for (LaunchResult &result : results)
    for (int &loop : result.dims)
      if (loop != kNoDim)
        loop = number[loop];
}

namespace {

/// Whether a value in the body of an op is the same at all positions of the loops in `along`.
class RowAnalysis {
public:
  RowAnalysis(linalg::LinalgOp op, ArrayRef<int> loops, int along)
      : op(op), loops(loops), along(along) {}

  bool isUniform(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() != &op->getRegion(0).front())
        return argument.getOwner()->getParentOp()->isProperAncestor(op);
      OpOperand *operand = op.getMatchingOpOperand(argument);
      return isa<RankedTensorType>(operand->get().getType())
                 ? !llvm::is_contained(accessOf(op, *operand, loops).dims, along)
                 : true;
    }
    Operation *definition = value.getDefiningOp();
    if (!op->isProperAncestor(definition))
      return true;
    if (auto index = dyn_cast<linalg::IndexOp>(definition))
      return loops[index.getDim()] != along;
    return definition->getNumRegions() == 0 &&
           llvm::all_of(definition->getOperands(), [&](Value v) { return isUniform(v); });
  }

private:
  linalg::LinalgOp op;
  ArrayRef<int> loops;
  int along;
};

/// Ops of the stage that computing an element runs, with their loops.
using VisitedOp = std::pair<linalg::LinalgOp, SmallVector<int, 4>>;

void collectOps(const KernelStage &stage, OpResult result, ArrayRef<int> dims,
                std::set<ElementAccess> &seen, std::vector<VisitedOp> &ops) {
  if (!seen.insert({result, SmallVector<int, 4>(dims)}).second)
    return;
  auto op = cast<linalg::LinalgOp>(result.getOwner());
  SmallVector<int, 4> loops = loopsFor(result, dims);
  ops.push_back({op, loops});
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()) ||
        !op.payloadUsesValueFromOperand(&operand) || !isComputedInPlace(stage, operand.get()))
      continue;
    ElementAccess access = accessOf(op, operand, loops);
    collectOps(stage, cast<OpResult>(access.tensor), access.dims, seen, ops);
  }
}

} // namespace

/// Loops whose position bodies look at stay separate, so that it need not be divided out of that
/// of a longer loop; and rows of tables that are read along a loop.
void LaunchDomain::findPositions() {
  isSeparate.assign(extents.size(), false);
  std::set<ElementAccess> seen;
  std::vector<VisitedOp> ops;
  for (const LaunchResult &result : results)
    collectOps(*stage, result.value, result.dims, seen, ops);
  for (auto &[op, opLoops] : ops) {
    linalg::LinalgOp visited = op;
    ArrayRef<int> visitedLoops = opLoops;
    visited->walk([&](linalg::IndexOp index) {
      if (int loop = visitedLoops[index.getDim()]; loop != kNoDim)
        isSeparate[loop] = true;
    });
    for (Operation &inner : visited->getRegion(0).front()) {
      auto extract = dyn_cast<tensor::ExtractOp>(inner);
      if (!extract || extract.getIndices().empty())
        continue;
      auto last = extract.getIndices().back().getDefiningOp<linalg::IndexOp>();
      int loop = last && last->getParentOp() == visited ? visitedLoops[last.getDim()] : kNoDim;
      if (loop == kNoDim)
        continue;
      RowAnalysis analysis(visited, visitedLoops, loop);
      if (llvm::all_of(extract.getIndices().drop_back(),
                       [&](Value v) { return analysis.isUniform(v); }) &&
          llvm::all_of(visited.getDpsInputOperands(), [&](OpOperand *operand) {
            return stage->kernel.checksOf(operand->get()).empty() ||
                   analysis.isUniform(visited.getMatchingBlockArgument(operand));
          }))
        lookups.push_back({extract, visited, opLoops, stage->kernel.placeOf(extract.getTensor()),
                           static_cast<unsigned>(loop)});
    }
  }
}

LoopStride LaunchDomain::times(LoopStride stride, OpFoldResult extent,
                               std::optional<unsigned> kernelDim) const {
  if (std::optional<int64_t> constant = getConstantIntValue(extent)) {
    stride.factor *= *constant;
  } else {
    assert(kernelDim && "an extent that is not known belongs to a dim of the kernel");
    stride.extents.push_back(*kernelDim);
    llvm::sort(stride.extents);
  }
  return stride;
}

LoopStride LaunchDomain::strideOf(const ElementAccess &element, Value memory, unsigned loop) const {
  SmallVector<unsigned> positions;
  for (auto [position, dim] : llvm::enumerate(element.dims))
    if (dim == static_cast<int>(loop))
      positions.push_back(position);
  LoopStride result;
  if (positions.empty())
    return result;
  auto type = cast<MemRefType>(memory.getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  bool known = succeeded(type.getStridesAndOffset(strides, offset));
  bool isStatic = known && llvm::all_of(positions, [&](unsigned position) {
                    return !ShapedType::isDynamic(strides[position]);
                  });
  if (isStatic) {
    for (unsigned position : positions)
      result.factor += strides[position];
    return result;
  }
  // Dense memory of which some sizes are not known: each is an extent of the kernel.
  if (positions.size() == 1 && type.getLayout().isIdentity()) {
    result.factor = 1;
    ArrayRef<std::optional<unsigned>> dims = stage->kernel.dims().dimsOf(element.tensor);
    bool complete = true;
    for (unsigned i = positions.front() + 1; i < type.getRank(); ++i) {
      if (!type.isDynamicDim(i))
        result.factor *= type.getDimSize(i);
      else if (dims[i])
        result.extents.push_back(*dims[i]);
      else
        complete = false;
    }
    llvm::sort(result.extents);
    if (complete)
      return result;
  }
  result.factor = 1;
  result.extents.clear();
  result.positions.assign(positions.begin(), positions.end());
  return result;
}

void LaunchDomain::findAccesses() {
  std::vector<ElementAccess> elements;
  for (const LaunchResult &result : results)
    collectReads(*stage, {result.value, result.dims}, elements);
  for (const ElementAccess &element : elements)
    reads.push_back({element, stage->kernel.placeOf(element.tensor), {}});
  for (const LaunchResult &result : results) {
    SmallVector<Value, 2> places(stage->kernel.destinationsOf(result.value));
    if (places.empty())
      places.push_back(stage->kernel.placeOf(result.value));
    for (Value place : places)
      writes.push_back({{result.value, result.dims}, place, {}});
  }
}

bool LaunchDomain::canJoin(const CollapsedLoop &outer, unsigned inner) const {
  unsigned last = outer.members.back();
  if (isSeparate[last] || isSeparate[inner])
    return false;
  for (const std::vector<LaunchAccess> *list : {&reads, &writes})
    for (const LaunchAccess &access : *list) {
      LoopStride far = strideOf(access.element, access.memory, last);
      LoopStride near = strideOf(access.element, access.memory, inner);
      if (!near.positions.empty() || !(far == times(near, extents[inner], kernelDims[inner])))
        return false;
    }
  return true;
}

void LaunchDomain::collapse(OpBuilder &host) {
  for (unsigned loop = 0; loop < extents.size(); ++loop) {
    if (!loops.empty() && canJoin(loops.back(), loop))
      loops.back().members.push_back(loop);
    else
      loops.push_back({{loop}, {}});
  }
  for (CollapsedLoop &loop : loops) {
    SmallVector<OpFoldResult> sizes;
    for (unsigned member : loop.members)
      sizes.push_back(extents[member]);
    loop.extent = multiply(host, stage->kernel.getLoc(), sizes);
  }
  for (std::vector<LaunchAccess> *list : {&reads, &writes})
    for (LaunchAccess &access : *list)
      for (const CollapsedLoop &loop : loops)
        access.strides.push_back(strideOf(access.element, access.memory, loop.members.back()));
}

SmallVector<OpFoldResult> LaunchDomain::loopExtents() const {
  SmallVector<OpFoldResult> result;
  for (const CollapsedLoop &loop : loops)
    result.push_back(loop.extent);
  return result;
}

OpFoldResult LaunchDomain::points(OpBuilder &host) const {
  return multiply(host, stage->kernel.getLoc(), extents);
}

std::optional<int64_t> LaunchDomain::positionBound() const {
  std::optional<int64_t> bound = staticProduct(extents);
  if (!bound)
    return bound;
  for (const std::vector<LaunchAccess> *list : {&reads, &writes})
    for (const LaunchAccess &access : *list) {
      int64_t last = 0;
      for (auto [loop, stride] : llvm::zip_equal(loops, access.strides)) {
        if (!stride.isStatic())
          return std::nullopt;
        for (unsigned member : loop.members) {
          LoopStride own = strideOf(access.element, access.memory, member);
          last += own.factor * *getConstantIntValue(extents[member]);
        }
      }
      bound = std::max(*bound, last);
    }
  return bound;
}

Value strideValue(const LaunchDomain &domain, const LaunchAccess &access, unsigned loop,
                  const DeviceIndex &index, OpBuilder &builder, Location loc) {
  const LoopStride &stride = access.strides[loop];
  if (stride.positions.empty()) {
    Value result = index.constant(stride.factor);
    for (unsigned dim : stride.extents)
      result = index.mul(result, index.of(domain.stage->kernel.extentOf(dim)));
    return result;
  }
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, access.memory);
  Value sum;
  for (unsigned position : stride.positions) {
    Value part = index.of(OpFoldResult(metadata.getStrides()[position]));
    sum = sum ? index.add(sum, part) : part;
  }
  return sum;
}

void DomainElements::moveTo(ArrayRef<Value> to) {
  point.assign(to.begin(), to.end());
  positions.assign(domain.extents.size(), Value());
  forgetElements();
}

Value DomainElements::flatPosition(const LaunchAccess &access) {
  Value sum;
  for (auto [loop, stride] : llvm::enumerate(access.strides)) {
    if (stride.is(0))
      continue;
    Value part = point[loop];
    if (!stride.is(1))
      part = index.mul(part, strideValue(domain, access, loop, index, builder, loc));
    sum = sum ? index.add(sum, part) : part;
  }
  return sum ? index.toIndex(sum) : arith::ConstantIndexOp::create(builder, loc, 0).getResult();
}

/// Its size is what the loops reach at most.
Value DomainElements::flatMemory(const LaunchAccess &access) {
  auto type = cast<MemRefType>(access.memory.getType());
  if (type.hasStaticShape() && type.getLayout().isIdentity())
    return flatView(builder, loc, access.memory, builder.getIndexAttr(type.getNumElements()));
  // What no loop moves in is one element.
  bool isOne = llvm::all_of(access.strides, [](const auto &stride) { return stride.is(0); });
  Value last = index.constant(isOne ? 1 : 0);
  for (auto [loop, stride] : llvm::enumerate(access.strides))
    if (!stride.is(0))
      last = index.add(last, index.mul(index.of(domain.loops[loop].extent),
                                       strideValue(domain, access, loop, index, builder, loc)));
  return flatView(builder, loc, access.memory, OpFoldResult(index.toIndex(last)));
}

Value DomainElements::position(int loop) {
  Value &known = positions[loop];
  if (known)
    return known;
  for (auto [number, collapsed] : llvm::enumerate(domain.loops)) {
    if (!llvm::is_contained(collapsed.members, static_cast<unsigned>(loop)))
      continue;
    SmallVector<OpFoldResult> sizes;
    for (unsigned member : collapsed.members)
      sizes.push_back(domain.extents[member]);
    for (auto [member, value] :
         llvm::zip_equal(collapsed.members, index.delinearize(point[number], sizes)))
      positions[member] = index.toIndex(value);
  }
  return positions[loop];
}

Value DomainElements::read(const ElementAccess &element) {
  for (const LaunchAccess &access : domain.reads)
    if (access.element == element)
      return memref::LoadOp::create(builder, loc, flatMemory(access), flatPosition(access));
  return ElementBuilder::read(element);
}

void DomainElements::computeAndStore() {
  SmallVector<Value> values;
  for (const LaunchResult &result : domain.results)
    values.push_back(element({result.value, result.dims}));
  for (const LaunchAccess &access : domain.writes) {
    const auto *result = llvm::find_if(
        domain.results, [&](const LaunchResult &r) { return r.value == access.element.tensor; });
    memref::StoreOp::create(builder, loc, values[result - domain.results.begin()],
                            flatMemory(access), flatPosition(access));
  }
}

} // namespace shardc::cuda
