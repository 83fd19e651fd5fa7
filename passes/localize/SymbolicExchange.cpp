// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/redistribute/core/SymbolicExchange.h"
#include "passes/localize/Exchange.h"
#include "passes/localize/FlatExchange.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

namespace {

class SymbolicExchangeEmitter {
public:
  SymbolicExchangeEmitter(LocalIndices indices, const RedistributeStep &step,
                          ArrayRef<int64_t> shape, Value local, ArrayRef<OpFoldResult> sizes,
                          ArrayRef<GlobalSize> globals)
      : indices(indices), builder(this->indices.getBuilder()),
        emit(builder, this->indices.getLoc()), step(step), exchange(step, shape), local(local),
        sizes(sizes), globals(globals), mesh(indices.getMesh().getValue()) {}

  Value run() {
    const size_t n = exchange.size(), dims = exchange.dims().size();
    unit = unitOf(indices, sizes, exchange.dims());
    for (size_t i = 0; i < dims; ++i) {
      mineBefore.push_back(boundsOf(step.before, i, std::nullopt));
      mineAfter.push_back(boundsOf(step.after, i, std::nullopt));
    }
    SmallVector<Value> messages, leaving, arriving;
    for (size_t peer = 0; peer < n; ++peer) {
      messages.push_back(messageTo(peer, leaving.emplace_back()));
      arriving.push_back(arrivingFrom(peer));
    }
    Value sent = emit.cat(messages, 0);
    sent.setType(typeOf(getAsOpFoldResult(indices.sum(leaving))));
    arrived = emitFlatExchange(indices, step.axes, sent, leaving, arriving);
    Value at = indices.constant(0);
    for (Value length : arriving) {
      Value end = indices.add(at, length);
      places.push_back({at, end});
      at = end;
    }
    SmallVector<size_t> cell;
    return assemble(cell);
  }

private:
  /// A number for every position of the mesh.
  template <typename F> Value table(F &&numberAt) {
    SmallVector<int64_t> numbers;
    for (int64_t position = 0; position < mesh.numDevices(); ++position)
      numbers.push_back(numberAt(position));
    return indices.table(numbers);
  }
  /// The coordinate of a member of this rank's group; of this rank itself without `member`.
  Coordinate coordinateOf(int64_t position, std::optional<size_t> member) const {
    return mesh.coordinateOfPosition(member ? exchange.positionOf(position, *member) : position);
  }

  /// What a rank holds of the i-th exchanged dim.
  IndexInterval boundsOf(const Layout &layout, size_t i, std::optional<size_t> member) {
    int64_t dim = exchange.dims()[i];
    return indices.interval(globals[dim], layout.splitOfDim(dim),
                            [&](int64_t position) { return coordinateOf(position, member); });
  }

  Value messageTo(size_t peer, Value &length) {
    Value sends = table([&](int64_t position) {
      return int64_t(exchange.sends(exchange.memberAt(position), peer));
    });
    length = indices.mul(sends, unit);
    Value message = local;
    for (auto [i, dim] : llvm::enumerate(exchange.dims())) {
      IndexInterval part = indices.within(mineBefore[i], boundsOf(step.after, i, peer));
      if (i == 0) // to whom this rank sends nothing, it sends an empty interval
        part.end = indices.add(part.begin, indices.mul(sends, indices.lengthOf(part)));
      length = indices.mul(length, indices.lengthOf(part));
      message =
          emit.slice(message, dim, getAsOpFoldResult(part.begin), getAsOpFoldResult(part.end));
    }
    return emit.view(message, {getAsOpFoldResult(length)});
  }

  Value arrivingFrom(size_t peer) {
    Value length = indices.mul(table([&](int64_t position) {
                                 return int64_t(exchange.sends(peer, exchange.memberAt(position)));
                               }),
                               unit);
    for (size_t i = 0; i < exchange.dims().size(); ++i)
      length = indices.mul(
          length, indices.lengthOf(indices.within(mineAfter[i], boundsOf(step.before, i, peer))));
    return length;
  }

  RankedTensorType typeOf(ArrayRef<OpFoldResult> dims) const {
    SmallVector<int64_t> numbers;
    for (OpFoldResult size : dims)
      numbers.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
    return RankedTensorType::get(numbers, aten::elementTypeOf(local));
  }

  /// A member that holds a part of the i-th exchanged dim.
  size_t holderOf(size_t i, size_t part) const {
    size_t member = 0;
    while (exchange.partOf(i, member) != part)
      ++member;
    return member;
  }

  /// The block made of all cells that begin with these parts: parts are in order along each dim.
  Value assemble(SmallVectorImpl<size_t> &cell) {
    size_t i = cell.size();
    if (i == exchange.dims().size())
      return arrivedCell(cell);
    SmallVector<Value> pieces;
    for (size_t part = 0; part < exchange.numParts(i); ++part) {
      cell.push_back(part);
      pieces.push_back(assemble(cell));
      cell.pop_back();
    }
    if (pieces.size() == 1)
      return pieces.front();
    SmallVector<OpFoldResult> whole = shapeOf(cell);
    Value joined = emit.cat(pieces, exchange.dims()[i]);
    joined.setType(typeOf(whole));
    return joined;
  }

  /// This rank's sizes of what it needs of these parts; all of the exchanged dims behind them.
  SmallVector<OpFoldResult> shapeOf(ArrayRef<size_t> cell) {
    SmallVector<OpFoldResult> result(sizes);
    for (auto [i, dim] : llvm::enumerate(exchange.dims())) {
      Value length = indices.lengthOf(mineAfter[i]);
      if (i < cell.size())
        length = indices.lengthOf(
            indices.within(mineAfter[i], boundsOf(step.before, i, holderOf(i, cell[i]))));
      result[dim] = getAsOpFoldResult(length);
    }
    return result;
  }

  Value arrivedCell(ArrayRef<size_t> cell) {
    // Who sends it differs from rank to rank; all but one of these products are zero.
    Value begin = indices.constant(0), end = indices.constant(0);
    for (size_t peer = 0; peer < exchange.size(); ++peer) {
      auto isSource = [&](int64_t position) {
        return int64_t(exchange.source(exchange.memberAt(position), cell) == peer);
      };
      Value isHere = table(isSource);
      begin = indices.add(begin, indices.mul(isHere, places[peer].begin));
      end = indices.add(end, indices.mul(isHere, places[peer].end));
    }
    Value flat = emit.slice(arrived, 0, getAsOpFoldResult(begin), getAsOpFoldResult(end));
    return emit.view(flat, shapeOf(cell));
  }

  LocalIndices indices;
  OpBuilder &builder;
  Emitter emit;
  const RedistributeStep &step;
  SymbolicExchange exchange;
  Value local;
  ArrayRef<OpFoldResult> sizes;
  ArrayRef<GlobalSize> globals;
  const Mesh &mesh;
  SmallVector<IndexInterval> mineBefore, mineAfter; ///< of this rank, by exchanged dim
  SmallVector<IndexInterval> places;                ///< in what arrived, by member
  Value unit, arrived;
};

} // namespace

Value shardc::emitSymbolicExchange(LocalIndices indices, const RedistributeStep &step,
                                   ArrayRef<int64_t> shape, Value local,
                                   ArrayRef<OpFoldResult> sizes, ArrayRef<GlobalSize> globals) {
  return SymbolicExchangeEmitter(indices, step, shape, local, sizes, globals).run();
}
