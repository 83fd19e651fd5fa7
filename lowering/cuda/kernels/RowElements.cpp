// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/kernels/RowElements.h"

#include "lowering/cuda/kernels/Launches.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <bit>

using namespace mlir;

namespace shardc::cuda {
namespace {

constexpr int64_t kAccessBytes = 16;
constexpr int64_t kMostElements = 8;

int64_t bytesOf(Value memory) {
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  return element.isIntOrFloat() ? element.getIntOrFloatBitWidth() / 8 : 0;
}

SmallVector<int64_t> stridesOf(Value memory) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(cast<MemRefType>(memory.getType()).getStridesAndOffset(strides, offset)))
    strides.clear();
  return strides;
}

/// Elements of one access to a chunk of `vector` elements.
int64_t partOf(Value memory, int64_t vector) {
  return std::min(vector, kAccessBytes / bytesOf(memory));
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

/// The code of one element of a chunk.
class ChunkElements : public ElementBuilder {
public:
  ChunkElements(RowChunk &chunk, unsigned number)
      : ElementBuilder(chunk.row.stage, chunk.row.builder, chunk.row.loc), chunk(chunk),
        number(number) {}

  Value element(const ElementAccess &access) override {
    RowLaunch &row = chunk.row;
    if (row.space.isOfRow(access))
      return row.ofRow(access);
    auto buffer = row.buffers.find(access);
    if (buffer == row.buffers.end())
      return ElementBuilder::element(access);
    if (row.space.kept().at(access) < row.pass) {
      Value &value = reloaded[access];
      if (!value)
        value = memref::LoadOp::create(builder, loc, buffer->second, chunk.slotOf(number));
      return value;
    }
    Value value = ElementBuilder::element(access);
    if (!reloaded[access])
      memref::StoreOp::create(builder, loc, value, buffer->second, chunk.slotOf(number));
    return reloaded[access] = value;
  }

protected:
  Value position(int dim) override { return chunk.positionOf(number, dim); }
  Value read(const ElementAccess &access) override { return chunk.load(access, number); }

private:
  RowChunk &chunk;
  unsigned number;
  std::map<ElementAccess, Value> reloaded;
};

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
  if (strides.empty() || strides.back() != 1 || bytesOf(place) == 0 ||
      bytesOf(place) > kAccessBytes)
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
  int64_t least = kAccessBytes;
  auto consider = [&](Value place, ArrayRef<int> dims) {
    RowMemory memory{place, SmallVector<int, 4>(dims)};
    if (!place || !isContiguous(memory, 1))
      return;
    if (!first.first)
      first = memory;
    least = std::min(least, bytesOf(place));
  };
  for (const ElementAccess &access : space.reads())
    consider(stage.kernel.placeOf(access.tensor), access.dims);
  for (const RowResult &result : space.results())
    if (result.hasPositions)
      consider(stage.kernel.placeOf(result.value), result.access.dims);
  if (!first.first)
    return;
  width = std::min(kMostElements, kAccessBytes / least);
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
  SmallVector<Value> positions = device.delinearize(
      arith::IndexCastUIOp::create(builder, loc, device.type(), number), outerExtents);
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
  int64_t bytes = bytesOf(place), unit = partOf(place, plan.vector) * bytes;
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

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

RowChunk::RowChunk(RowLaunch &row, Value number, bool bounded) : row(row), number(number) {
  OpBuilder &b = row.builder;
  Location loc = row.loc;
  int64_t width = row.plan.vector;
  inside.resize(width);
  first = number;
  if (width > 1)
    first = arith::MulIOp::create(b, loc, first, row.index(width));
  if (row.shift)
    first = arith::SubIOp::create(b, loc, first, row.shift);
  int64_t known = row.space.staticLength();
  // Chunks of several dims end with the last of them.
  bool exact = !row.shift && (width == 1 || row.space.inner().size() > 1 ||
                              (known != kUnknownSize && known % width == 0));
  if (exact && !bounded) {
    whole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, number, row.chunks);
    inside.assign(width, whole);
  } else if (!exact) {
    Value end = arith::AddIOp::create(b, loc, first, row.index(width));
    whole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, end, row.length);
    if (row.shift)
      whole = row.both(
          whole, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, first, row.index(0)));
    for (unsigned i = 0; i < width; ++i) {
      Value position = arith::AddIOp::create(b, loc, first, row.index(i));
      // A negative position is a large number.
      inside[i] = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, position, row.length);
    }
  }
  if (row.space.inner().size() > 1) {
    Value position = first;
    if (whole)
      position = arith::SelectOp::create(b, loc, whole, position, row.index(0));
    DeviceIndex device(b, loc, known == kUnknownSize ? std::nullopt : std::optional(known));
    Value narrow = arith::IndexCastUIOp::create(b, loc, device.type(), position);
    for (Value value : device.delinearize(narrow, row.innerExtents))
      start.push_back(device.toIndex(value));
  }
  for (unsigned i = 0; i < width; ++i)
    lanes.push_back(std::make_unique<ChunkElements>(*this, i));
}

RowChunk::~RowChunk() = default;

/// Of an element that does not exist: that of one that does.
Value RowChunk::positionOf(unsigned element, int dim) {
  OpBuilder &b = row.builder;
  auto it = row.outer.find(dim);
  if (it != row.outer.end())
    return it->second;
  ArrayRef<int> inner = row.space.inner();
  auto found = llvm::find(inner, dim);
  if (found == inner.end())
    return row.index(0);
  if (inner.size() > 1) {
    Value position = start[found - inner.begin()];
    if (dim == inner.back() && element > 0)
      position = arith::AddIOp::create(b, row.loc, position, row.index(element));
    return position;
  }
  Value position = first;
  if (element > 0)
    position = arith::AddIOp::create(b, row.loc, position, row.index(element));
  if (inside[element])
    position = arith::SelectOp::create(b, row.loc, inside[element], position, row.index(0));
  return position;
}

SmallVector<Value> RowChunk::positionsIn(const RowMemory &memory, unsigned element) {
  SmallVector<Value> positions;
  for (int dim : memory.second)
    positions.push_back(dim == kNoDim ? row.index(0) : positionOf(element, dim));
  return positions;
}

/// Neighbouring threads have neighbouring slots.
Value RowChunk::slotOf(unsigned element) {
  OpBuilder &b = row.builder;
  if (element == 0)
    return number;
  int64_t chunks = llvm::divideCeil(
      row.space.staticLength() + (row.shift ? row.plan.vector - 1 : 0), row.plan.vector);
  return arith::AddIOp::create(b, row.loc, number, row.index(element * chunks));
}

SmallVector<Value> RowChunk::loadScalars(const RowMemory &memory) {
  SmallVector<Value> values;
  for (unsigned i = 0; i < size(); ++i)
    values.push_back(
        memref::LoadOp::create(row.builder, row.loc, memory.first, positionsIn(memory, i)));
  return values;
}

SmallVector<Value> RowChunk::loadVectors(const RowMemory &memory) {
  OpBuilder &b = row.builder;
  Value place = memory.first;
  Type element = cast<MemRefType>(place.getType()).getElementType();
  int64_t part = partOf(place, size());
  auto type = VectorType::get({part}, element);
  SmallVector<Value> positions = positionsIn(memory, 0), values;
  if (row.space.inner().size() == 1) // the chunk is whole
    positions.back() = first;
  Value begin = positions.back();
  for (unsigned i = 0; i < size(); i += part) {
    if (i > 0)
      positions.back() = arith::AddIOp::create(b, row.loc, begin, row.index(i));
    Value vector = vector::LoadOp::create(b, row.loc, type, place, positions, false,
                                          llvm::Align(part * bytesOf(place)));
    values.push_back(vector);
  }
  return values;
}

/// Reads the whole chunk; of elements that do not exist, others.
Value RowChunk::load(const ElementAccess &access, unsigned element) {
  auto it = loaded.find(access);
  if (it != loaded.end())
    return it->second[element];
  OpBuilder &b = row.builder;
  RowMemory memory{row.stage.kernel.placeOf(access.tensor), access.dims};
  assert(memory.first && "a value that a stage reads was stored by one before");
  if (size() == 1 || !row.accesses.isContiguous(memory, size()))
    return (loaded[access] = loadScalars(memory))[element];
  Value fits = row.both(row.isAligned(memory), whole);
  Type type = cast<MemRefType>(memory.first.getType()).getElementType();
  // Both ways make vectors: of elements, LLVM would make one way of the two, which reads each.
  int64_t part = partOf(memory.first, size());
  auto vectors = VectorType::get({part}, type);
  SmallVector<Type> types(size() / part, vectors);
  auto choice = scf::IfOp::create(b, row.loc, types, fits, true);
  SmallVector<Value> &values = loaded[access];
  for (Value vector : choice.getResults())
    for (int64_t i = 0; i < part; ++i)
      values.push_back(vector::ExtractOp::create(b, row.loc, vector, i));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(b, row.loc, loadVectors(memory));
  b.setInsertionPointToStart(choice.elseBlock());
  SmallVector<Value> scalars = loadScalars(memory), parts;
  for (unsigned i = 0; i < size(); i += part)
    parts.push_back(vector::FromElementsOp::create(b, row.loc, vectors,
                                                   ArrayRef<Value>(scalars).slice(i, part)));
  scf::YieldOp::create(b, row.loc, parts);
  return values[element];
}

SmallVector<Value> RowChunk::elements(const ElementAccess &access) {
  SmallVector<Value> values;
  for (std::unique_ptr<ElementBuilder> &lane : lanes)
    values.push_back(lane->element(access));
  return values;
}

std::pair<SmallVector<Value>, SmallVector<Value>>
RowChunk::step(const RowReduction &reduction, unsigned element, ValueRange state) {
  linalg::GenericOp op = reduction.op;
  SmallVector<Value> inits(op.getNumDpsInits());
  for (auto [number, value] : llvm::zip_equal(reduction.combiner.results(), state))
    inits[number] = value;
  SmallVector<Value> yielded = lanes[element]->compute(op, row.space.loopsOf(op), inits);
  SmallVector<Value> next;
  for (auto [number, old] : llvm::zip_equal(reduction.combiner.results(), state)) {
    Value value = yielded[number];
    if (inside[element])
      value = arith::SelectOp::create(row.builder, row.loc, inside[element], value, old);
    next.push_back(value);
  }
  return {next, yielded};
}

SmallVector<Value> RowChunk::accumulate(const RowReduction &reduction, ValueRange state) {
  SmallVector<Value> next(state);
  for (unsigned i = 0; i < size(); ++i)
    next = step(reduction, i, next).first;
  return next;
}

void RowChunk::store(const ElementAccess &result, ValueRange values) {
  OpBuilder &b = row.builder;
  Location loc = row.loc;
  SmallVector<Value, 2> places(row.stage.kernel.destinationsOf(result.tensor));
  if (places.empty())
    places.push_back(row.stage.kernel.placeOf(result.tensor));
  auto storeScalars = [&](const RowMemory &memory) {
    for (unsigned i = 0; i < size(); ++i) {
      OpBuilder::InsertionGuard guard(b);
      if (Value exists = row.both(row.active, inside[i]))
        b.setInsertionPoint(scf::IfOp::create(b, loc, exists, false).thenYield());
      memref::StoreOp::create(b, loc, values[i], memory.first, positionsIn(memory, i));
    }
  };
  for (Value place : places) {
    RowMemory memory{place, result.dims};
    if (size() == 1 || !row.accesses.isContiguous(memory, size())) {
      storeScalars(memory);
      continue;
    }
    Value fits = row.both(row.both(row.isAligned(memory), whole), row.active);
    auto choice = scf::IfOp::create(b, loc, fits, true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(choice.thenYield());
    int64_t part = partOf(place, size());
    SmallVector<Value> positions = positionsIn(memory, 0);
    if (row.space.inner().size() == 1)
      positions.back() = first;
    Value begin = positions.back();
    for (unsigned i = 0; i < size(); i += part) {
      if (i > 0)
        positions.back() = arith::AddIOp::create(b, loc, begin, row.index(i));
      auto type = VectorType::get({part}, values.front().getType());
      Value vector = vector::FromElementsOp::create(b, loc, type, values.slice(i, part));
      vector::StoreOp::create(b, loc, vector, place, positions, false,
                              llvm::Align(part * bytesOf(place)));
    }
    b.setInsertionPoint(choice.elseYield());
    storeScalars(memory);
  }
}

} // namespace shardc::cuda
