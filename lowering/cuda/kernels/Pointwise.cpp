// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops without reductions, any number of them: a thread computes a few neighbouring elements of each
// result and all that they need. Neighbours are read and written together where every memory
// is aligned; else each thread takes elements that are a block apart, so that neighbouring threads
// still read neighbouring elements.

#include "lowering/cuda/Accesses.h"
#include "lowering/cuda/kernels/LaunchDomain.h"
#include "lowering/cuda/kernels/Transposed.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace shardc::cuda {
namespace {

constexpr int64_t kPointwiseThreads = 256;
/// Most elements of a thread, and most bytes of one memory that it reads or writes together.
constexpr int64_t kMaxLanes = 8;
constexpr int64_t kMaxBytes = 32;

/// What can be read or written as vectors along the innermost loop.
class VectorPlan {
public:
  explicit VectorPlan(const LaunchDomain &domain);

  const LaunchDomain &domain;
  int64_t lanes = 1;

  bool isVector(const LaunchAccess &access) const;
  bool isVector(const RowLookup &lookup) const;
  /// Elements that one instruction moves.
  int64_t accessLanes(Type element) const {
    return std::min(lanes, kVectorBytes / bytesOfElement(element));
  }
  /// An i1, the same in all threads: whether all that is to be vectors is aligned.
  Value isPossible(const DeviceIndex &index, OpBuilder &builder, Location loc) const;

private:
  void addConditions(const LaunchAccess &access, const DeviceIndex &index, OpBuilder &builder,
                     Location loc, SmallVectorImpl<Value> &conditions) const;
  void addConditions(const RowLookup &lookup, OpBuilder &builder, Location loc,
                     SmallVectorImpl<Value> &conditions) const;
};

VectorPlan::VectorPlan(const LaunchDomain &domain) : domain(domain) {
  if (domain.loops.empty())
    return;
  int64_t least = 0, most = 0;
  auto consider = [&](Type element) {
    int64_t bytes = bytesOfElement(element);
    least = least ? std::min(least, bytes) : bytes;
    most = std::max(most, bytes);
  };
  for (const std::vector<LaunchAccess> *list : {&domain.reads, &domain.writes})
    for (const LaunchAccess &access : *list)
      if (access.strides.back().is(1))
        consider(access.elementType());
  for (const RowLookup &lookup : domain.lookups)
    if (domain.loops.back().members.back() == lookup.loop)
      consider(cast<MemRefType>(lookup.table.getType()).getElementType());
  if (!least)
    return;
  int64_t wanted = std::min({kVectorBytes / least, kMaxBytes / most, kMaxLanes});
  OpFoldResult inner = domain.loops.back().extent;
  std::optional<int64_t> extent = getConstantIntValue(inner);
  if (extent && domain.loops.size() > 1)
    while (*extent % wanted != 0)
      wanted /= 2;
  else if (extent)
    while (wanted > *extent)
      wanted /= 2;
  lanes = std::max<int64_t>(1, wanted);
  // Nothing to gain where no memory is read or written as a vector.
  auto hasVectors = [&] {
    auto test = [&](const auto &access) { return isVector(access); };
    return llvm::any_of(domain.reads, test) || llvm::any_of(domain.writes, test) ||
           llvm::any_of(domain.lookups, test);
  };
  if (!hasVectors())
    lanes = 1;
}

bool VectorPlan::isVector(const LaunchAccess &access) const {
  if (lanes == 1 || !access.strides.back().is(1))
    return false;
  int64_t together = accessLanes(access.elementType());
  return llvm::all_of(ArrayRef(access.strides).drop_back(), [&](const LoopStride &stride) {
    return !stride.isStatic() || stride.factor % together == 0;
  });
}

bool VectorPlan::isVector(const RowLookup &lookup) const {
  if (lanes == 1 || domain.loops.back().members.back() != lookup.loop)
    return false;
  auto type = cast<MemRefType>(lookup.table.getType());
  int64_t together = accessLanes(type.getElementType());
  SmallVector<int64_t> strides;
  int64_t offset;
  return succeeded(type.getStridesAndOffset(strides, offset)) && strides.back() == 1 &&
         llvm::all_of(ArrayRef(strides).drop_back(), [&](int64_t stride) {
           return ShapedType::isDynamic(stride) || stride % together == 0;
         });
}

void VectorPlan::addConditions(const LaunchAccess &access, const DeviceIndex &index,
                               OpBuilder &builder, Location loc,
                               SmallVectorImpl<Value> &conditions) const {
  int64_t together = accessLanes(access.elementType());
  if (together == 1)
    return;
  conditions.push_back(
      isAligned(builder, loc, access.memory, together * bytesOfElement(access.elementType())));
  for (auto [loop, stride] : llvm::enumerate(ArrayRef(access.strides).drop_back()))
    if (stride.factor % together != 0 || !stride.positions.empty())
      conditions.push_back(isMultiple(
          builder, loc,
          OpFoldResult(index.toIndex(strideValue(domain, access, loop, index, builder, loc))),
          together));
}

void VectorPlan::addConditions(const RowLookup &lookup, OpBuilder &builder, Location loc,
                               SmallVectorImpl<Value> &conditions) const {
  auto type = cast<MemRefType>(lookup.table.getType());
  int64_t together = accessLanes(type.getElementType());
  if (together == 1)
    return;
  conditions.push_back(
      isAligned(builder, loc, lookup.table, together * bytesOfElement(type.getElementType())));
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)type.getStridesAndOffset(strides, offset);
  if (llvm::none_of(strides, ShapedType::isDynamic))
    return;
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, lookup.table);
  for (auto [position, stride] : llvm::enumerate(strides))
    if (ShapedType::isDynamic(stride))
      conditions.push_back(
          isMultiple(builder, loc, OpFoldResult(metadata.getStrides()[position]), together));
}

Value VectorPlan::isPossible(const DeviceIndex &index, OpBuilder &builder, Location loc) const {
  SmallVector<Value> conditions;
  for (const std::vector<LaunchAccess> *list : {&domain.reads, &domain.writes})
    for (const LaunchAccess &access : *list)
      if (isVector(access))
        addConditions(access, index, builder, loc, conditions);
  for (const RowLookup &lookup : domain.lookups)
    if (isVector(lookup))
      addConditions(lookup, builder, loc, conditions);
  OpFoldResult inner = domain.loops.back().extent;
  if (domain.loops.size() > 1 && !getConstantIntValue(inner))
    conditions.push_back(isMultiple(builder, loc, inner, lanes));
  Value all;
  for (Value condition : conditions)
    all = all ? arith::AndIOp::create(builder, loc, all, condition).getResult() : condition;
  return all ? all : arith::ConstantIntOp::create(builder, loc, 1, 1).getResult();
}

/// Elements of neighbouring points, one lane after the other.
class VectorElements : public DomainElements {
public:
  VectorElements(const VectorPlan &plan, OpBuilder &builder, Location loc, const DeviceIndex &index)
      : DomainElements(plan.domain, builder, loc, index), plan(plan) {}

  void computeAndStoreLanes(ArrayRef<Value> first);

protected:
  Value read(const ElementAccess &element) override;
  Value lookUp(tensor::ExtractOp extract, linalg::LinalgOp op, ArrayRef<int> loops,
               ValueRange positions, Value valid) override;

private:
  void moveToLane(int64_t to);

  const VectorPlan &plan;
  int64_t lane = 0;
  SmallVector<Value> start;
  std::map<ElementAccess, SmallVector<Value>> loaded; // of all lanes, or the one of all
  std::map<std::pair<Operation *, SmallVector<int, 4>>, SmallVector<Value>> rows;
};

void VectorElements::moveToLane(int64_t to) {
  lane = to;
  SmallVector<Value> next(start);
  if (lane > 0)
    next.back() = index.add(start.back(), index.constant(lane));
  SmallVector<Value> before = positions;
  moveTo(next);
  // Loops outside of the innermost stay where they are.
  if (lane > 0)
    for (const CollapsedLoop &loop : ArrayRef(domain.loops).drop_back())
      for (unsigned member : loop.members)
        positions[member] = before[member];
}

Value VectorElements::read(const ElementAccess &element) {
  for (const LaunchAccess &access : domain.reads) {
    if (!(access.element == element))
      continue;
    bool isUniform = access.strides.back().is(0), isVector = plan.isVector(access);
    if (!isUniform && !isVector)
      return DomainElements::read(element);
    SmallVector<Value> &lanes = loaded[element];
    if (lanes.empty() && isUniform)
      lanes.push_back(DomainElements::read(element));
    if (lanes.empty()) {
      assert(lane == 0 && "all lanes run the same code");
      lanes = loadLanes(builder, loc, flatMemory(access), flatPosition(access), plan.lanes);
    }
    return isUniform ? lanes.front() : lanes[lane];
  }
  return DomainElements::read(element);
}

Value VectorElements::lookUp(tensor::ExtractOp extract, linalg::LinalgOp op, ArrayRef<int> loops,
                             ValueRange at, Value valid) {
  for (const RowLookup &lookup : domain.lookups) {
    if (lookup.extract != extract || ArrayRef<int>(lookup.loops) != loops || !plan.isVector(lookup))
      continue;
    SmallVector<Value> &lanes = rows[{extract, lookup.loops}];
    if (lanes.empty()) {
      auto type = cast<MemRefType>(lookup.table.getType());
      SmallVector<Type> types(plan.lanes, type.getElementType());
      lanes = onlyIf(valid, types,
                     [&] { return loadLanes(builder, loc, lookup.table, at, plan.lanes); });
    }
    return lanes[lane];
  }
  return DomainElements::lookUp(extract, op, loops, at, valid);
}

void VectorElements::computeAndStoreLanes(ArrayRef<Value> first) {
  start.assign(first.begin(), first.end());
  SmallVector<SmallVector<Value>> values(domain.results.size());
  for (int64_t i = 0; i < plan.lanes; ++i) {
    moveToLane(i);
    for (auto [list, result] : llvm::zip_equal(values, domain.results))
      list.push_back(element({result.value, result.dims}));
  }
  for (const LaunchAccess &access : domain.writes) {
    size_t number = 0;
    while (domain.results[number].value != access.element.tensor)
      ++number;
    if (plan.isVector(access)) {
      moveToLane(0);
      storeLanes(builder, loc, values[number], flatMemory(access), flatPosition(access));
      continue;
    }
    for (int64_t i = 0; i < plan.lanes; ++i) {
      moveToLane(i);
      memref::StoreOp::create(builder, loc, values[number][i], flatMemory(access),
                              flatPosition(access));
    }
  }
}

/// One launch for a domain.
class PointwiseEmitter {
public:
  PointwiseEmitter(const LaunchDomain &domain, OpBuilder &host)
      : domain(domain), host(host), loc(domain.stage->kernel.getLoc()), plan(domain) {}

  void emit();

private:
  void emitOne(OpBuilder &b, const DeviceIndex &index, Value number);
  void emitSeveral(OpBuilder &b, const DeviceIndex &index, gpu::LaunchOp launch);

  const LaunchDomain &domain;
  OpBuilder &host;
  Location loc;
  VectorPlan plan;
  OpFoldResult total;
};

void PointwiseEmitter::emitOne(OpBuilder &b, const DeviceIndex &index, Value number) {
  DomainElements elements(domain, b, loc, index);
  elements.moveTo(index.delinearize(number, domain.loopExtents()));
  elements.computeAndStore();
}

void PointwiseEmitter::emitSeveral(OpBuilder &b, const DeviceIndex &index, gpu::LaunchOp launch) {
  Value lanes = index.constant(plan.lanes), all = index.of(total);
  Value first = index.mul(index.globalThread(launch), lanes);
  Value last = index.add(first, lanes);
  Value aligned = plan.isPossible(index, b, loc);
  Value whole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule, last, all);
  Value together = arith::AndIOp::create(b, loc, aligned, whole);
  auto choice = scf::IfOp::create(b, loc, together, /*withElseRegion=*/true);
  {
    OpBuilder inner = choice.getThenBodyBuilder();
    VectorElements elements(plan, inner, loc, index.at(inner));
    elements.computeAndStoreLanes(index.at(inner).delinearize(first, domain.loopExtents()));
  }
  // One by one: the elements of the last thread, or, where memory is not aligned, of every thread.
  OpBuilder inner = choice.getElseBodyBuilder();
  DeviceIndex i = index.at(inner);
  Value thread = i.of(launch.getThreadIds().x);
  Value block = i.of(launch.getBlockIds().x);
  Value ofBlock = i.mul(block, i.constant(kPointwiseThreads * plan.lanes));
  auto select = [&](Value a, Value b) -> Value {
    return arith::SelectOp::create(inner, loc, aligned, a, b);
  };
  Value from = select(first, i.add(ofBlock, thread));
  Value step = select(i.constant(1), i.constant(kPointwiseThreads));
  Value end = select(last, i.add(ofBlock, i.constant(kPointwiseThreads * plan.lanes)));
  end = arith::MinUIOp::create(inner, loc, end, all);
  auto loop = scf::ForOp::create(inner, loc, from, end, step);
  OpBuilder body = OpBuilder::atBlockBegin(loop.getBody());
  emitOne(body, index.at(body), loop.getInductionVar());
}

void PointwiseEmitter::emit() {
  total = domain.points(host);
  int64_t inBlock = kPointwiseThreads * plan.lanes;
  OpFoldResult grid = divideUp(host, loc, total, inBlock);
  createLaunch(host, loc, grid, kPointwiseThreads, {}, [&](OpBuilder &b, gpu::LaunchOp launch) {
    std::optional<int64_t> bound = domain.positionBound();
    if (bound)
      *bound += 2 * inBlock;
    DeviceIndex index(b, loc, bound);
    if (plan.lanes > 1)
      return emitSeveral(b, index, launch);
    Value number = index.globalThread(launch);
    auto inside = scf::IfOp::create(b, loc, index.less(number, index.of(total)), false);
    OpBuilder inner = inside.getThenBodyBuilder();
    emitOne(inner, index.at(inner), number);
  });
}

class PointwiseKind : public KernelKind {
public:
  StringRef name() const override { return "pointwise"; }

  size_t match(FusedKernel &kernel, ArrayRef<linalg::LinalgOp> ops) const override {
    size_t count = 0;
    while (count < ops.size() && isPointwise(ops[count]) &&
           readsMemory(kernel, ops.take_front(count), ops[count]))
      ++count;
    return count;
  }

  LogicalResult emit(const KernelStage &stage, OpBuilder &host) const override {
    for (const LaunchDomain &domain : LaunchDomain::divide(stage, host))
      if (!emitTransposed(domain, host))
        PointwiseEmitter(domain, host).emit();
    return success();
  }

private:
  /// Whether what `op` reads at computed positions is in memory before.
  static bool readsMemory(FusedKernel &kernel, ArrayRef<linalg::LinalgOp> before,
                          linalg::LinalgOp op) {
    WalkResult walk = op->walk([&](tensor::ExtractOp extract) {
      return kernel.placeOf(extract.getTensor()) &&
                     !llvm::is_contained(before, extract.getTensor().getDefiningOp())
                 ? WalkResult::advance()
                 : WalkResult::interrupt();
    });
    return !walk.wasInterrupted();
  }
};

} // namespace

std::unique_ptr<KernelKind> createPointwiseKind() { return std::make_unique<PointwiseKind>(); }

} // namespace shardc::cuda
