// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/Exchange.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

namespace {

using Sizes = SmallVector<OpFoldResult>;

class ExchangeEmitter {
public:
  ExchangeEmitter(OpBuilder &builder, Location loc, const StepExchange &step, Value local,
                  ArrayRef<OpFoldResult> sizes)
      : builder(builder), loc(loc), step(step),
        indices(builder, loc, MeshAttr::get(builder.getContext(), step.mesh)), emit(builder, loc),
        local(local), sizes(sizes), members(step.mesh.numDevices()) {
    for (const GroupExchange &group : step.groups)
      for (auto [index, position] : llvm::enumerate(group.positions))
        members[position] = {&group.exchange, index};
    SmallVector<StringAttr> names;
    for (unsigned axis : step.axes)
      names.push_back(builder.getStringAttr(step.mesh.axes[axis].name));
    group = AxesAttr::get(builder.getContext(), indices.getMesh(), names);
  }

  Value run() {
    if (std::optional<std::vector<int64_t>> pairs = permutationOf(step))
      return PermuteOp::create(builder, loc, TypeRange{resultType()}, ValueRange{local},
                               ValueRange(), group, builder.getDenseI64ArrayAttr(*pairs),
                               builder.getDenseI64ArrayAttr({-1}), ArrayAttr())
          .getResult(0);
    unit = unitSize();
    return receive(send());
  }

private:
  /// A rank's part in the step: the exchange of its group, and its position there.
  struct Member {
    const BlockExchange *exchange;
    size_t index;
  };
  /// A number for every rank.
  using Table = SmallVector<int64_t>;
  template <typename F> Table tableOf(F &&value) const {
    Table table;
    for (const Member &member : members)
      table.push_back(value(*member.exchange, member.index));
    return table;
  }
  size_t groupSize() const { return step.groups.front().positions.size(); }
  OpFoldResult asSize(const Table &table) { return getAsOpFoldResult(indices.table(table)); }

  /// The type with other sizes of some dims: a number where it is the same on all ranks.
  static RankedTensorType withSize(Type type, int64_t dim, const Table &table) {
    auto tensor = cast<RankedTensorType>(type);
    SmallVector<int64_t> shape(tensor.getShape());
    shape[dim] = llvm::all_equal(table) ? table.front() : ShapedType::kDynamic;
    return RankedTensorType::get(shape, tensor.getElementType());
  }
  RankedTensorType resultType() const {
    Type type = local.getType();
    for (auto [i, dim] : llvm::enumerate(step.dims))
      type = withSize(type, dim, extentsAfter(i));
    return cast<RankedTensorType>(type);
  }
  Table extentsAfter(size_t i) const {
    return tableOf([&](const BlockExchange &exchange, size_t index) {
      const HeldBlock &after = exchange.blockAfter(index);
      return after ? sizeOf((*after)[i]) : 0;
    });
  }
  Table extentsBefore(size_t i) const {
    return tableOf([&](const BlockExchange &exchange, size_t index) {
      const HeldBlock &before = exchange.blockBefore(index);
      return before ? sizeOf((*before)[i]) : 0;
    });
  }

  /// Elements of the dims that go along as they are.
  Value unitSize() {
    Value product = indices.constant(1);
    for (auto [dim, size] : llvm::enumerate(sizes)) {
      if (llvm::is_contained(step.dims, static_cast<int64_t>(dim)))
        continue;
      std::optional<int64_t> fixed = getConstantIntValue(size);
      product = indices.mul(product, fixed ? indices.constant(*fixed) : cast<Value>(size));
    }
    return product;
  }
  /// `table` times the elements that go along.
  Value elements(const Table &table) { return indices.mul(indices.table(table), unit); }

  /// The concatenation of intervals [begin, end) along a dim, by rank; ranks with fewer have empty
  /// ones.
  Value pick(Value value, int64_t dim, ArrayRef<std::vector<Run>> runsOfRank) {
    size_t most = 1;
    for (const std::vector<Run> &runs : runsOfRank)
      most = std::max(most, runs.size());
    SmallVector<Value> pieces;
    Table total(runsOfRank.size(), 0);
    for (size_t k = 0; k < most; ++k) {
      Table begin, end, length;
      for (auto [rank, runs] : llvm::enumerate(runsOfRank)) {
        Run run = k < runs.size() ? runs[k] : Run{0, 0};
        begin.push_back(run.begin);
        end.push_back(run.end);
        length.push_back(run.size());
        total[rank] += run.size();
      }
      Value piece = emit.slice(value, dim, asSize(begin), asSize(end));
      piece.setType(withSize(value.getType(), dim, length));
      pieces.push_back(piece);
    }
    if (pieces.size() == 1)
      return pieces.front();
    Value all = emit.cat(pieces, dim);
    all.setType(withSize(value.getType(), dim, total));
    return all;
  }

  /// Whether each rank's intervals are all that it has.
  static bool isAll(ArrayRef<std::vector<Run>> runsOfRank, const Table &extents) {
    for (auto [runs, extent] : llvm::zip(runsOfRank, extents))
      if (extent != 0 && (runs.size() != 1 || runs[0] != Run{0, extent}))
        return false;
    return true;
  }

  /// The messages to all positions, one after the other.
  Value send() {
    SmallVector<Value> messages;
    for (size_t to = 0; to < groupSize(); ++to) {
      Table count = tableOf([&](const BlockExchange &exchange, size_t index) {
        return exchange.messageSize(index, to);
      });
      sendCounts.push_back(count);
      if (llvm::all_of(count, [](int64_t n) { return n == 0; }))
        continue;
      Value message = local;
      for (auto [i, dim] : llvm::enumerate(step.dims)) {
        SmallVector<std::vector<Run>> runs;
        for (const Member &member : members) {
          auto box = member.exchange->message(member.index, to);
          runs.push_back(box ? (*box)[i] : std::vector<Run>());
        }
        if (!isAll(runs, extentsBefore(i)))
          message = pick(message, dim, runs);
      }
      messages.push_back(flatten(message, count));
    }
    if (messages.empty()) // nobody needs anything
      messages.push_back(emit.zeros({builder.getIndexAttr(0)}, aten::elementTypeOf(local)));
    return messages.size() == 1 ? messages.front() : emit.cat(messages, 0);
  }

  Value flatten(Value message, const Table &count) {
    Value length = elements(count);
    Value flat = emit.view(message, {getAsOpFoldResult(length)});
    return flat;
  }

  /// The `extents` of a collective on a flat tensor.
  ArrayAttr extentsOf(ArrayRef<Table> counts, SmallVectorImpl<Value> &operands) {
    SmallVector<int64_t> fixed;
    for (const Table &count : counts) {
      Value length = elements(count);
      std::optional<int64_t> constant = getConstantIntValue(length);
      fixed.push_back(constant.value_or(kDynamic));
      if (!constant)
        operands.push_back(length);
    }
    return builder.getArrayAttr(builder.getDenseI64ArrayAttr(fixed));
  }

  Value receive(Value flat) {
    SmallVector<Table> counts;
    Table total(members.size(), 0);
    for (size_t from = 0; from < groupSize(); ++from) {
      counts.push_back(tableOf([&](const BlockExchange &exchange, size_t index) {
        return exchange.messageSize(from, index);
      }));
      for (auto [sum, count] : llvm::zip(total, counts.back()))
        sum += count;
    }
    SmallVector<Value> operands;
    ArrayAttr leaving = extentsOf(sendCounts, operands), arriving = extentsOf(counts, operands);
    Type elementType = aten::elementTypeOf(local);
    Value length = elements(total);
    auto type = RankedTensorType::get({getConstantIntValue(length).value_or(ShapedType::kDynamic)},
                                      elementType);
    arrived = AllToAllOp::create(builder, loc, TypeRange{type}, ValueRange{flat}, operands, group,
                                 builder.getDenseI64ArrayAttr({0}),
                                 builder.getDenseI64ArrayAttr({0}), leaving, arriving)
                  .getResult(0);
    SmallVector<size_t> cell;
    Value whole = assemble(cell);
    whole.setType(resultType());
    return whole;
  }

  size_t numParts(size_t i) const {
    size_t most = 1;
    for (const GroupExchange &member : step.groups)
      most = std::max(most, member.exchange.parts(i).size());
    return most;
  }
  /// What each rank needs of a part along the i-th exchanged dim: intervals of its own new indices.
  SmallVector<std::vector<Run>> sharesOf(size_t i, size_t part) const {
    SmallVector<std::vector<Run>> shares;
    for (const Member &member : members) {
      const HeldBlock &after = member.exchange->blockAfter(member.index);
      const auto &parts = member.exchange->parts(i);
      shares.push_back(after && part < parts.size() ? localIntersection((*after)[i], parts[part])
                                                    : std::vector<Run>());
    }
    return shares;
  }
  static Table lengthsOf(ArrayRef<std::vector<Run>> runs) {
    Table lengths;
    for (const std::vector<Run> &list : runs)
      lengths.push_back(sizeOf(list));
    return lengths;
  }

  /// The block made of all cells that begin with these parts.
  Value assemble(SmallVectorImpl<size_t> &cell) {
    size_t i = cell.size();
    if (i == step.dims.size())
      return arrivedCell(cell);
    int64_t dim = step.dims[i];
    SmallVector<Value> pieces;
    SmallVector<SmallVector<std::vector<Run>>> shares;
    for (size_t part = 0, n = numParts(i); part < n; ++part) {
      shares.push_back(sharesOf(i, part));
      bool isEmpty = llvm::all_of(lengthsOf(shares.back()), [](int64_t n) { return n == 0; });
      if (isEmpty && (part + 1 < n || !pieces.empty()))
        continue;
      cell.push_back(part);
      pieces.push_back(assemble(cell));
      cell.pop_back();
    }
    Value all = pieces.front();
    if (pieces.size() > 1) {
      all = emit.cat(pieces, dim);
      all.setType(withSize(all.getType(), dim, extentsAfter(i)));
    }
    SmallVector<std::vector<Run>> order = inOrder(shares);
    return isAll(order, extentsAfter(i)) ? all : pick(all, dim, order);
  }

  /// Where the elements of the new block, in order, are in the concatenation of all parts' shares.
  SmallVector<std::vector<Run>>
  inOrder(ArrayRef<SmallVector<std::vector<Run>>> sharesOfPart) const {
    SmallVector<std::vector<Run>> result(members.size());
    for (size_t rank = 0; rank < members.size(); ++rank) {
      SmallVector<std::pair<int64_t, Run>> pieces; // new index, place in the concatenation
      int64_t at = 0;
      for (const auto &shares : sharesOfPart)
        for (const Run &run : shares[rank]) {
          pieces.push_back({run.begin, {at, at + run.size()}});
          at += run.size();
        }
      llvm::sort(pieces, [](const auto &a, const auto &b) { return a.first < b.first; });
      for (const auto &[index, run] : pieces) {
        if (!result[rank].empty() && result[rank].back().end == run.begin)
          result[rank].back().end = run.end;
        else
          result[rank].push_back(run);
      }
    }
    return result;
  }

  /// What arrived of one cell.
  Value arrivedCell(ArrayRef<size_t> cell) {
    auto isCell = [&](const BlockExchange &exchange) {
      for (auto [i, part] : llvm::enumerate(cell))
        if (part >= exchange.parts(i).size())
          return false;
      return true;
    };
    Table begin = tableOf([&](const BlockExchange &exchange, size_t index) -> int64_t {
      std::optional<size_t> source;
      if (isCell(exchange))
        source = exchange.source(index, cell);
      int64_t at = 0;
      for (size_t from = 0; source && from < *source; ++from)
        at += exchange.messageSize(from, index);
      return at;
    });
    SmallVector<Table> lengths;
    Table end = begin;
    Sizes shape(sizes);
    Table count(members.size(), 1);
    Type type = local.getType();
    for (auto [i, part] : llvm::enumerate(cell)) {
      Table length = lengthsOf(sharesOf(i, part));
      for (auto [product, n] : llvm::zip(count, length))
        product *= n;
      shape[step.dims[i]] = asSize(length);
      type = withSize(type, step.dims[i], length);
    }
    for (auto [last, n] : llvm::zip(end, count))
      last += n;
    Value flat = emit.slice(arrived, 0, getAsOpFoldResult(elements(begin)),
                            getAsOpFoldResult(elements(end)));
    std::optional<int64_t> fixed = getConstantIntValue(elements(count));
    flat.setType(
        RankedTensorType::get({fixed.value_or(ShapedType::kDynamic)}, aten::elementTypeOf(local)));
    Value block = emit.view(flat, shape);
    block.setType(cast<RankedTensorType>(type));
    return block;
  }

  OpBuilder &builder;
  Location loc;
  const StepExchange &step;
  LocalIndices indices;
  Emitter emit;
  Value local;
  ArrayRef<OpFoldResult> sizes;
  SmallVector<Member> members; ///< by position in the mesh
  AxesAttr group;
  Value unit, arrived;
  SmallVector<Table> sendCounts; ///< by target position
};

} // namespace

Value shardc::emitExchange(OpBuilder &builder, Location loc, const StepExchange &step, Value local,
                           ArrayRef<OpFoldResult> sizes) {
  return ExchangeEmitter(builder, loc, step, local, sizes).run();
}
