// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/kernels/Transposed.h"

#include "lowering/cuda/Accesses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace shardc::cuda {
namespace {

/// A square has this many rows; a warp runs along one.
constexpr int64_t kSide = 32;
constexpr int64_t kRows = 8; // of threads
/// Shared memory of all squares.
constexpr int64_t kSharedBytes = 48 * 1024;
/// Shorter loops are not worth a square.
constexpr int64_t kLeastExtent = 8;

bool isLong(const CollapsedLoop &loop) {
  std::optional<int64_t> extent = getConstantIntValue(loop.extent);
  return !extent || *extent >= kLeastExtent;
}

/// Which loops make the squares, and which memories are read through them.
struct SquarePlan {
  unsigned across = 0; // the loop along which these memories have their neighbours
  SmallVector<unsigned> reads;
};

std::optional<SquarePlan> planSquares(const LaunchDomain &domain) {
  if (domain.loops.size() < 2 || !isLong(domain.loops.back()))
    return std::nullopt;
  unsigned inner = domain.loops.size() - 1;
  SmallVector<SquarePlan> plans(inner);
  for (auto [number, access] : llvm::enumerate(domain.reads)) {
    if (access.strides[inner].is(0) || access.strides[inner].is(1))
      continue;
    for (unsigned loop = 0; loop < inner; ++loop)
      if (access.strides[loop].is(1) && isLong(domain.loops[loop])) {
        plans[loop].reads.push_back(number);
        break;
      }
  }
  auto best = llvm::max_element(plans, [](const SquarePlan &a, const SquarePlan &b) {
    return a.reads.size() < b.reads.size();
  });
  if (best->reads.empty())
    return std::nullopt;
  best->across = best - plans.begin();
  int64_t bytes = 0;
  llvm::erase_if(best->reads, [&](unsigned number) {
    int64_t square = kSide * (kSide + 1) * bytesOfElement(domain.reads[number].elementType());
    bytes += square;
    return bytes > kSharedBytes;
  });
  return *best;
}

/// Elements of squares come from shared memory.
class SquareElements : public DomainElements {
public:
  using DomainElements::DomainElements;
  /// Shared memory by access, and the position in it.
  std::map<ElementAccess, Value> squares;
  SmallVector<Value> inSquare;

protected:
  Value read(const ElementAccess &element) override {
    auto it = squares.find(element);
    return it == squares.end()
               ? DomainElements::read(element)
               : memref::LoadOp::create(builder, loc, it->second, inSquare).getResult();
  }
};

class SquareEmitter {
public:
  SquareEmitter(const LaunchDomain &domain, const SquarePlan &plan, OpBuilder &host)
      : domain(domain), plan(plan), host(host), loc(domain.stage->kernel.getLoc()) {}

  void emit();

private:
  void emitBody(OpBuilder &b, gpu::LaunchOp launch);
  /// Runs `body` at each row of the square that belongs to this thread, with the position of the
  /// row in the square, where the point is in the domain.
  void forEachRow(OpBuilder &b, const DeviceIndex &index, ArrayRef<Value> blockPoint,
                  bool alongInner,
                  llvm::function_ref<void(OpBuilder &, ArrayRef<Value>, Value)> body);

  const LaunchDomain &domain;
  const SquarePlan &plan;
  OpBuilder &host;
  Location loc;
  SmallVector<OpFoldResult> counts; // of blocks along each loop
  Value threadX, threadY;           // in the type of positions
};

void SquareEmitter::forEachRow(OpBuilder &b, const DeviceIndex &index, ArrayRef<Value> blockPoint,
                               bool alongInner,
                               llvm::function_ref<void(OpBuilder &, ArrayRef<Value>, Value)> body) {
  unsigned inner = domain.loops.size() - 1;
  for (int64_t step = 0; step < kSide; step += kRows) {
    Value row = index.add(threadY, index.constant(step));
    SmallVector<Value> point(blockPoint);
    point[inner] = index.add(point[inner], alongInner ? threadX : row);
    point[plan.across] = index.add(point[plan.across], alongInner ? row : threadX);
    Value inside = arith::AndIOp::create(
        b, loc, index.less(point[inner], index.of(domain.loops[inner].extent)),
        index.less(point[plan.across], index.of(domain.loops[plan.across].extent)));
    auto guard = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false);
    OpBuilder rowBuilder = guard.getThenBodyBuilder();
    body(rowBuilder, point, row);
  }
}

void SquareEmitter::emitBody(OpBuilder &b, gpu::LaunchOp launch) {
  std::optional<int64_t> bound = domain.positionBound();
  // Blocks at the edges reach beyond it.
  if (bound)
    *bound = *bound * 2 + kSide * kSide;
  DeviceIndex index(b, loc, bound);
  auto id = [&](Value value) -> Value { return index.of(value); };
  threadX = id(launch.getThreadIds().x);
  threadY = id(launch.getThreadIds().y);
  SmallVector<Value> point = index.delinearize(id(launch.getBlockIds().x), counts);
  for (unsigned loop : {plan.across, static_cast<unsigned>(domain.loops.size() - 1)})
    point[loop] = index.mul(point[loop], index.constant(kSide));

  forEachRow(b, index, point, /*alongInner=*/false,
             [&](OpBuilder &inner, ArrayRef<Value> at, Value row) {
               DeviceIndex i = index.at(inner);
               DomainElements elements(domain, inner, loc, i);
               elements.moveTo(at);
               for (auto [number, square] :
                    llvm::zip_equal(plan.reads, launch.getWorkgroupAttributions())) {
                 const LaunchAccess &access = domain.reads[number];
                 Value element = memref::LoadOp::create(inner, loc, elements.flatMemory(access),
                                                        elements.flatPosition(access));
                 memref::StoreOp::create(inner, loc, element, square,
                                         ValueRange{i.toIndex(row), i.toIndex(threadX)});
               }
             });
  gpu::BarrierOp::create(b, loc);
  forEachRow(
      b, index, point, /*alongInner=*/true, [&](OpBuilder &inner, ArrayRef<Value> at, Value row) {
        DeviceIndex i = index.at(inner);
        SquareElements elements(domain, inner, loc, i);
        elements.moveTo(at);
        for (auto [number, square] : llvm::zip_equal(plan.reads, launch.getWorkgroupAttributions()))
          elements.squares[domain.reads[number].element] = square;
        elements.inSquare = {i.toIndex(threadX), i.toIndex(row)};
        elements.computeAndStore();
      });
}

void SquareEmitter::emit() {
  unsigned inner = domain.loops.size() - 1;
  for (auto [number, loop] : llvm::enumerate(domain.loops))
    counts.push_back(number == inner || number == plan.across
                         ? divideUp(host, loc, loop.extent, kSide)
                         : loop.extent);
  SmallVector<Type> squares;
  for (unsigned number : plan.reads)
    squares.push_back(sharedMemory({kSide, kSide + 1}, domain.reads[number].elementType()));
  createLaunch(host, loc, multiply(host, loc, counts), {kSide, kRows}, squares,
               [&](OpBuilder &b, gpu::LaunchOp launch) { emitBody(b, launch); });
}

} // namespace

bool emitTransposed(const LaunchDomain &domain, OpBuilder &host) {
  std::optional<SquarePlan> plan = planSquares(domain);
  if (!plan)
    return false;
  SquareEmitter(domain, *plan, host).emit();
  return true;
}

} // namespace shardc::cuda
