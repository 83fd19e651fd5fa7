// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/kernels/RowLaunch.h"

#include "lowering/cuda/Accesses.h"
#include "lowering/cuda/kernels/Launches.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <bit>

using namespace mlir;

namespace shardc::cuda {
namespace {

constexpr int64_t kMostElements = 8;

Type elementOf(Value memory) { return cast<MemRefType>(memory.getType()).getElementType(); }

SmallVector<int64_t> stridesOf(Value memory) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(cast<MemRefType>(memory.getType()).getStridesAndOffset(strides, offset)))
    strides.clear();
  return strides;
}

/// What does not change along a row. Dims of one element are at position 0.
class RowConstants : public ElementBuilder {
public:
  explicit RowConstants(RowLaunch &row)
      : ElementBuilder(row.stage, row.rowBuilder, row.loc), row(row) {}

protected:
  Value position(int dim) override {
    auto it = row.outer.find(dim);
    if (it != row.outer.end())
      return it->second;
    return arith::ConstantIndexOp::create(builder, loc, 0);
  }
  Value read(const ElementAccess &access) override {
    if (Value scalar = row.scalars.lookup(access.tensor))
      return scalar;
    return ElementBuilder::read(access);
  }

private:
  RowLaunch &row;
};

} // namespace

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

bool RowAccesses::isContiguous(const RowMemory &memory, int64_t width) const {
  auto &[place, dims] = memory;
  ArrayRef<int> inner = space.inner();
  if (inner.empty() || dims.empty() || dims.back() != inner.back() ||
      llvm::count(dims, inner.back()) != 1)
    return false;
  SmallVector<int64_t> strides = stridesOf(place);
  Type element = elementOf(place);
  // Vectors of bits are no bytes.
  if (strides.empty() || strides.back() != 1 || !element.isIntOrFloat() ||
      element.getIntOrFloatBitWidth() % 8 != 0 || bytesOfElement(element) > kVectorBytes)
    return false;
  for (auto [dim, stride] : llvm::zip_equal(dims, strides))
    if (dim != inner.back() && space.isInner(dim) &&
        (ShapedType::isDynamic(stride) || stride % width != 0))
      return false;
  return true;
}

RowAccesses::RowAccesses(const KernelStage &stage, const RowSpace &space) : space(space) {
  if (space.isColumns() || space.inner().empty())
    return;
  int64_t least = kVectorBytes;
  auto consider = [&](Value place, ArrayRef<int> dims) {
    RowMemory memory{place, SmallVector<int, 4>(dims)};
    if (!place || !isContiguous(memory, 1))
      return;
    if (!first.first)
      first = memory;
    least = std::min(least, bytesOfElement(elementOf(place)));
  };
  for (const ElementAccess &access : space.reads())
    consider(stage.kernel.placeOf(access.tensor), access.dims);
  for (const RowResult &result : space.results())
    if (result.hasPositions)
      consider(stage.kernel.placeOf(result.value), result.access.dims);
  if (!first.first)
    return;
  width = std::min(kMostElements, kVectorBytes / least);
  int64_t last = space.extent(space.inner().back());
  if (space.inner().size() > 1) // chunks must not cross the end of the last dim
    while (width > 1 && (ShapedType::isDynamic(last) || last % width != 0))
      width /= 2;
  else if (!ShapedType::isDynamic(last) && last < width)
    width = std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, last)));
  if (space.inner().size() > 1)
    return;
  for (auto [dim, stride] : llvm::zip_equal(first.second, stridesOf(first.first)))
    if (dim != kNoDim && !space.isInner(dim) && space.extent(dim) != 1)
      aligned &= !ShapedType::isDynamic(stride) && stride % width == 0;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

RowLaunch::RowLaunch(const KernelStage &stage, const RowSpace &space, const RowAccesses &accesses,
                     const RowPlan &plan, OpBuilder &builder, gpu::LaunchOp launch)
    : stage(stage), space(space), accesses(accesses), plan(plan), builder(builder),
      rowBuilder(builder), loc(stage.kernel.getLoc()), launch(launch), shared(launch),
      rowElements(std::make_unique<RowConstants>(*this)) {}

RowLaunch::~RowLaunch() = default;

Value RowLaunch::index(int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value RowLaunch::both(Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return arith::AndIOp::create(builder, loc, a, b);
}

Value RowLaunch::ofRow(const ElementAccess &access) { return rowElements->element(access); }

void RowLaunch::begin(OpFoldResult rows, ArrayRef<OpFoldResult> outerExtents,
                      ArrayRef<OpFoldResult> inner) {
  Value thread = launch.getThreadIds().x;
  team.size = plan.team;
  team.rows = plan.rowsOfBlock;
  team.columns = plan.columns;
  Value divisor = index(team.columns ? team.rows : team.size);
  Value major = arith::DivUIOp::create(builder, loc, thread, divisor);
  Value minor = arith::RemUIOp::create(builder, loc, thread, divisor);
  team.rank = team.columns ? major : minor;
  team.row = team.columns ? minor : major;
  Value block = launch.getBlockIds().x;
  number = arith::AddIOp::create(
      builder, loc, arith::MulIOp::create(builder, loc, block, index(team.rows)), team.row);
  std::optional<int64_t> known = getConstantIntValue(rows);
  if (team.rows > 1 && (!known || *known % team.rows != 0)) {
    Value count = getValueOrCreateConstantIndexOp(builder, loc, rows);
    active = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, number, count);
    number = arith::SelectOp::create(builder, loc, active, number, index(0));
  }
  DeviceIndex device(builder, loc, known);
  SmallVector<Value> positions = device.delinearize(device.of(number), outerExtents);
  for (auto [dim, position] : llvm::zip_equal(space.outer(), positions))
    outer[dim] = device.toIndex(position);
  innerExtents.assign(inner.begin(), inner.end());
  OpFoldResult all = multiply(builder, loc, inner);
  length = getValueOrCreateConstantIndexOp(builder, loc, all);
  rowBuilder.setInsertionPoint(builder.getInsertionBlock(), builder.getInsertionPoint());
  if (plan.vector > 1 && !accesses.alignedRows()) {
    Value offset = offsetOfRow(accesses.aligning(), plan.vector);
    shift = arith::RemUIOp::create(builder, loc, offset, index(plan.vector));
  }
  Value end = length;
  if (shift)
    end = arith::AddIOp::create(builder, loc, end, shift);
  chunks = arith::CeilDivUIOp::create(builder, loc, end, index(plan.vector));
  if (shift) {
    Value empty = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, length, index(0));
    chunks = arith::SelectOp::create(builder, loc, empty, index(0), chunks);
  }
}

/// Elements between the beginning of the memory and that of the row; terms that are multiples of
/// `modulus` are left out.
Value RowLaunch::offsetOfRow(const RowMemory &memory, int64_t modulus) {
  auto &[place, dims] = memory;
  Value sum = arith::ConstantIndexOp::create(rowBuilder, loc, 0);
  memref::ExtractStridedMetadataOp metadata;
  for (auto [i, dim, stride] : llvm::enumerate(dims, stridesOf(place))) {
    auto it = outer.find(dim);
    if (it == outer.end() || (!ShapedType::isDynamic(stride) && stride % modulus == 0))
      continue;
    Value step;
    if (ShapedType::isDynamic(stride)) {
      if (!metadata)
        metadata = memref::ExtractStridedMetadataOp::create(rowBuilder, loc, place);
      step = metadata.getStrides()[i];
    } else {
      step = arith::ConstantIndexOp::create(rowBuilder, loc, stride);
    }
    Value term = arith::MulIOp::create(rowBuilder, loc, it->second, step);
    sum = arith::AddIOp::create(rowBuilder, loc, sum, term);
  }
  return sum;
}

Value RowLaunch::isAligned(const RowMemory &memory) {
  auto &[place, dims] = memory;
  Value &known = alignments[{place.getAsOpaquePointer(), dims}];
  if (known)
    return known;
  Type element = elementOf(place);
  int64_t bytes = bytesOfElement(element), unit = accessLanes(element, plan.vector) * bytes;
  OpBuilder &b = rowBuilder;
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, place);
  Value offset = offsetOfRow(memory, plan.vector);
  SmallVector<int64_t> strides;
  int64_t start;
  if (failed(cast<MemRefType>(place.getType()).getStridesAndOffset(strides, start)))
    start = ShapedType::kDynamic;
  if (ShapedType::isDynamic(start)) {
    auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, place);
    offset = arith::AddIOp::create(b, loc, offset, metadata.getOffset());
  } else if (start != 0) {
    offset = arith::AddIOp::create(b, loc, offset, arith::ConstantIndexOp::create(b, loc, start));
  }
  if (shift)
    offset = arith::SubIOp::create(b, loc, offset, shift);
  Value size = arith::ConstantIndexOp::create(b, loc, bytes);
  address = arith::AddIOp::create(b, loc, address, arith::MulIOp::create(b, loc, offset, size));
  Value rest =
      arith::AndIOp::create(b, loc, address, arith::ConstantIndexOp::create(b, loc, unit - 1));
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  return known = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, rest, zero);
}

} // namespace shardc::cuda
