// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/tiling/TileSpace.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace shardc::tiling {
namespace {

/// Stands for an extent that is not known.
constexpr int64_t kTypicalExtent = 1024;

bool readsInit(linalg::LinalgOp op, OpOperand &init) {
  return op.payloadUsesValueFromOperand(&init);
}

} // namespace

struct TileSpace::Builder {
  Builder(func::FuncOp kernel, const target::Limits &limits, bool joinsRows)
      : kernel(kernel), limits(limits), joinsRows(joinsRows) {}

  func::FuncOp kernel;
  const target::Limits &limits;
  bool joinsRows;
  TileSpace space;
  /// Union-find over provisional dims.
  SmallVector<unsigned> parent;
  SmallVector<int64_t> extent;
  SmallVector<std::pair<Value, unsigned>> source;
  DenseMap<Operation *, SmallVector<unsigned>> loops;
  DenseMap<Value, SmallVector<std::optional<unsigned>>> dims;
  SmallVector<linalg::LinalgOp> ops;
  SmallVector<bufferization::MaterializeInDestinationOp> outputs;

  unsigned newDim(int64_t size, std::pair<Value, unsigned> from) {
    parent.push_back(parent.size());
    extent.push_back(size);
    source.push_back(from);
    return parent.size() - 1;
  }
  unsigned find(unsigned dim) {
    while (parent[dim] != dim)
      dim = parent[dim] = parent[parent[dim]];
    return dim;
  }
  void unite(unsigned a, unsigned b) {
    a = find(a), b = find(b);
    if (a == b)
      return;
    parent[b] = a;
    if (ShapedType::isDynamic(extent[a]))
      extent[a] = extent[b];
    if (!source[a].first)
      source[a] = source[b];
  }

  LogicalResult number();
  void addOp(linalg::LinalgOp op);
  LogicalResult addOperand(linalg::LinalgOp op, OpOperand &operand);
  void renumber();
  LogicalResult findDestinations();
  SmallVector<bool> dimsThatStayWhole();
  void chooseTiles();
  bool isInnerLoop(unsigned dim);
  void countWork();
};

void TileSpace::Builder::addOp(linalg::LinalgOp op) {
  SmallVector<unsigned> &list = loops[op];
  for (unsigned i = 0, e = op.getNumLoops(); i < e; ++i)
    list.push_back(newDim(ShapedType::kDynamic, {}));
}

LogicalResult TileSpace::Builder::addOperand(linalg::LinalgOp op, OpOperand &operand) {
  Value value = operand.get();
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return success();
  AffineMap map = op.getMatchingIndexingMap(&operand);
  auto index = [&](Value tensor) -> LogicalResult {
    SmallVector<std::optional<unsigned>> &list = dims[tensor];
    list.resize(type.getRank());
    for (auto [position, expr] : llvm::enumerate(map.getResults())) {
      if (isa<AffineConstantExpr>(expr))
        continue;
      auto loop = dyn_cast<AffineDimExpr>(expr);
      if (!loop)
        return op.emitOpError("indexes an operand by more than single loops: ")
               << AffineMapAttr::get(map);
      if (!list[position]) {
        bool known = tensor.getDefiningOp<bufferization::ToTensorOp>() ||
                     tensor.getDefiningOp<tensor::EmptyOp>();
        list[position] = newDim(type.getDimSize(position),
                                {known ? tensor : Value(), static_cast<unsigned>(position)});
      }
      unite(*list[position], loops[op][loop.getPosition()]);
    }
    return success();
  };
  if (failed(index(value)))
    return failure();
  // The result has the dims of the initial value.
  return op.isDpsInit(&operand) ? index(op.getTiedOpResult(&operand)) : success();
}

LogicalResult TileSpace::Builder::number() {
  for (Operation &op : kernel.getBody().front()) {
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      ops.push_back(linalgOp);
      addOp(linalgOp);
      for (OpOperand &operand : op.getOpOperands())
        if (failed(addOperand(linalgOp, operand)))
          return failure();
    }
    if (auto output = dyn_cast<bufferization::MaterializeInDestinationOp>(op))
      outputs.push_back(output);
  }
  return success();
}

/// From provisional dims to consecutive numbers.
void TileSpace::Builder::renumber() {
  DenseMap<unsigned, unsigned> numbers;
  auto number = [&](unsigned dim) {
    unsigned root = find(dim);
    auto [it, inserted] = numbers.try_emplace(root, numbers.size());
    if (inserted) {
      space.extents.push_back(extent[root]);
      space.sources.push_back(source[root]);
    }
    return it->second;
  };
  for (linalg::LinalgOp op : ops)
    for (unsigned dim : loops[op])
      space.loops[op].push_back(number(dim));
  for (auto &[value, list] : dims)
    for (std::optional<unsigned> dim : list)
      space.dims[value].push_back(dim ? std::optional(number(*dim)) : std::nullopt);
}

/// One place for each value: where two are wanted, one of them would stay unwritten.
LogicalResult TileSpace::Builder::findDestinations() {
  auto place = [&](Operation *op, Value value, Value destination) -> LogicalResult {
    if (space.destinations.try_emplace(value, destination).second)
      return success();
    return op->emitOpError("needs a value in a second place: each destination of a kernel has a "
                           "value of its own; this is a mistake of shardc, please report it");
  };
  for (bufferization::MaterializeInDestinationOp output : outputs)
    if (failed(place(output, output.getSource(), output.getDest())))
      return failure();
  for (linalg::LinalgOp op : llvm::reverse(ops))
    for (OpOperand &init : op.getDpsInitsMutable())
      if (readsInit(op, init))
        if (Value destination = space.destinationOf(op.getTiedOpResult(&init)))
          if (failed(place(op, init.get(), destination)))
            return failure();
  return success();
}

SmallVector<bool> TileSpace::Builder::dimsThatStayWhole() {
  SmallVector<bool> whole(space.extents.size(), false);
  for (linalg::LinalgOp op : ops) {
    llvm::SmallDenseSet<unsigned> seen;
    for (auto [loop, dim] : llvm::enumerate(space.loops[op]))
      if (op.getIteratorTypesArray()[loop] == utils::IteratorType::reduction ||
          !seen.insert(dim).second)
        whole[dim] = true;
  }
  for (bufferization::MaterializeInDestinationOp output : outputs) {
    llvm::SmallDenseSet<unsigned> present;
    for (std::optional<unsigned> dim : space.dims[output.getSource()])
      if (dim)
        present.insert(*dim);
    for (unsigned dim = 0; dim < whole.size(); ++dim)
      whole[dim] = whole[dim] || !present.contains(dim);
  }
  return whole;
}

/// Whether an op reduces over a loop outside that of `dim`.
bool TileSpace::Builder::isInnerLoop(unsigned dim) {
  for (linalg::LinalgOp op : ops) {
    bool reduced = false;
    for (auto [loop, other] : llvm::enumerate(space.loops[op])) {
      reduced |= op.getIteratorTypesArray()[loop] == utils::IteratorType::reduction;
      if (other == dim && reduced)
        return true;
    }
  }
  return false;
}

void TileSpace::Builder::chooseTiles() {
  if (outputs.empty())
    return;
  SmallVector<bool> whole = dimsThatStayWhole();
  int64_t elements = 1;
  bool reduces = false;
  for (auto [dim, extent] : llvm::enumerate(space.extents)) {
    if (!whole[dim] || extent == 1)
      continue;
    reduces = true;
    elements *= ShapedType::isDynamic(extent) ? kTypicalExtent : extent;
    elements = std::min<int64_t>(elements, int64_t(1) << 40);
  }
  SmallVector<unsigned> order;
  for (std::optional<unsigned> dim : space.dims[outputs.front().getSource()])
    if (dim && !whole[*dim] && space.extents[*dim] != 1)
      order.push_back(*dim);
  bool isShort = joinsRows && reduces && elements < limits.rowTileElements;
  SmallVector<TiledDim> inside;
  for (auto [position, dim] : llvm::enumerate(llvm::reverse(order))) {
    int64_t extent = space.extents[dim];
    int64_t size = 1;
    if (!reduces)
      size = std::max<int64_t>(1, limits.tileElements / std::max<int64_t>(1, elements));
    else if (position == 0 && isInnerLoop(dim))
      size = std::max(limits.rowTileElements, limits.tileElements / std::max<int64_t>(1, elements));
    bool fits = !ShapedType::isDynamic(extent) && extent <= size;
    // Several short rows are one tile, as long as they stay next to each other.
    if (isShort && inside.empty() && !ShapedType::isDynamic(extent))
      fits |= extent <= limits.tileElements / std::max<int64_t>(1, elements);
    if (fits) {
      elements *= std::max<int64_t>(1, extent);
      continue; // one tile: not divided
    }
    inside.push_back({dim, size});
    elements *= size;
    if (!reduces && size > 1)
      elements = std::max(elements, limits.tileElements); // the dims outside go one by one
  }
  space.tiled.assign(inside.rbegin(), inside.rend());
}

void TileSpace::Builder::countWork() {
  for (linalg::LinalgOp op : ops) {
    int64_t elements = 1;
    for (unsigned dim : space.loops[op]) {
      int64_t size = space.tileSize(dim) ? space.tileSize(dim) : space.extents[dim];
      elements *= ShapedType::isDynamic(size) ? kTypicalExtent : size;
      elements = std::min<int64_t>(elements, int64_t(1) << 40);
    }
    space.work += elements;
  }
}

FailureOr<TileSpace> TileSpace::analyze(func::FuncOp kernel, const target::Limits &limits,
                                        bool joinsRows) {
  Builder builder(kernel, limits, joinsRows);
  if (failed(builder.number()))
    return failure();
  builder.renumber();
  if (failed(builder.findDestinations()))
    return failure();
  builder.chooseTiles();
  builder.countWork();
  return std::move(builder.space);
}

int64_t TileSpace::tileSize(unsigned dim) const {
  for (const TiledDim &entry : tiled)
    if (entry.dim == dim)
      return entry.size;
  return 0;
}

ArrayRef<unsigned> TileSpace::loopsOf(linalg::LinalgOp op) const {
  auto it = loops.find(op);
  return it == loops.end() ? ArrayRef<unsigned>() : ArrayRef<unsigned>(it->second);
}

ArrayRef<std::optional<unsigned>> TileSpace::dimsOf(Value tensor) const {
  auto it = dims.find(tensor);
  return it == dims.end() ? ArrayRef<std::optional<unsigned>>()
                          : ArrayRef<std::optional<unsigned>>(it->second);
}

} // namespace shardc::tiling
