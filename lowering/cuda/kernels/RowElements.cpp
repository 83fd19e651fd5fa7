// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/kernels/RowElements.h"

#include "lowering/cuda/Accesses.h"
#include "lowering/cuda/kernels/Launches.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace shardc::cuda {

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
    Value narrow = device.of(position);
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

/// Where a whole chunk begins.
SmallVector<Value> RowChunk::beginIn(const RowMemory &memory) {
  SmallVector<Value> positions = positionsIn(memory, 0);
  if (row.space.inner().size() == 1)
    positions.back() = first;
  return positions;
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
  int64_t part = accessLanes(type, size());
  auto vectors = VectorType::get({part}, type);
  SmallVector<Type> types(size() / part, vectors);
  auto choice = scf::IfOp::create(b, row.loc, types, fits, true);
  SmallVector<Value> &values = loaded[access];
  for (Value vector : choice.getResults())
    for (int64_t i = 0; i < part; ++i)
      values.push_back(vector::ExtractOp::create(b, row.loc, vector, i));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(b, row.loc, loadVectors(b, row.loc, memory.first, beginIn(memory), size()));
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
    storeLanes(b, loc, values, place, beginIn(memory));
    b.setInsertionPoint(choice.elseYield());
    storeScalars(memory);
  }
}

} // namespace shardc::cuda
