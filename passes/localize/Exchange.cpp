// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/Exchange.h"

#include "passes/localize/FlatExchange.h"
#include "passes/localize/core/Slots.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

namespace {

using Sizes = SmallVector<OpFoldResult>;

class ExchangeEmitter {
public:
  ExchangeEmitter(OpBuilder &builder, Location loc, const StepExchange &step, Value local,
                  ArrayRef<OpFoldResult> sizes)
      : builder(builder), loc(loc), step(step), emit(builder, loc), local(local), sizes(sizes),
        members(step.mesh.numDevices()), from(sideOf(step.from)), to(sideOf(step.to)),
        all(sideOf(step.mesh)) {}

  Value run() {
    if (!step.crosses())
      return keep();
    if (std::optional<std::vector<int64_t>> pairs = permutationOf(step))
      return PermuteOp::create(builder, loc, TypeRange{resultType()}, ValueRange{local},
                               ValueRange(), groupOf(all), builder.getDenseI64ArrayAttr(*pairs),
                               builder.getDenseI64ArrayAttr({-1}), ArrayAttr())
          .getResult(0);
    bool isGather = tellsAllTheSame(step);
    return receive(send(isGather), isGather);
  }

private:
  /// A rank's part in the step: the exchange of its group, and its position there.
  struct Member {
    const BlockExchange *exchange;
    size_t index;
  };
  /// The ranks of a mesh, by position: those that have the tensor before, those that have it
  /// after, or those that take part in the collective. In a step on one mesh they are the same.
  struct Side {
    LocalIndices indices;
    SmallVector<Member> members;
    size_t size() const { return members.size(); }
  };
  /// A number for every rank of a side.
  using Table = SmallVector<int64_t>;

  Side sideOf(const Mesh &mesh) {
    if (members.front().exchange == nullptr)
      for (const GroupExchange &group : step.groups)
        for (auto [index, position] : llvm::enumerate(group.positions))
          members[position] = {&group.exchange, index};
    Side side{LocalIndices(builder, loc, MeshAttr::get(builder.getContext(), mesh)), {}};
    if (mesh == step.mesh) {
      side.members = members;
      return side;
    }
    llvm::DenseMap<int64_t, size_t> positionOf;
    for (size_t position = 0; position < members.size(); ++position)
      positionOf[step.mesh.rankAtPosition(static_cast<int64_t>(position))] = position;
    for (int64_t position = 0; position < mesh.numDevices(); ++position)
      side.members.push_back(members[positionOf.lookup(mesh.rankAtPosition(position))]);
    return side;
  }

  template <typename F> static Table tableOf(const Side &side, F &&value) {
    Table table;
    for (const Member &member : side.members)
      table.push_back(value(*member.exchange, member.index));
    return table;
  }
  size_t groupSize() const { return step.groups.front().positions.size(); }
  OpFoldResult asSize(Side &side, const Table &table) {
    return getAsOpFoldResult(side.indices.table(table));
  }
  AxesAttr groupOf(Side &side) {
    MeshAttr mesh = side.indices.getMesh();
    SmallVector<StringAttr> names;
    for (unsigned axis : step.axes)
      names.push_back(builder.getStringAttr(mesh.getValue().axes[axis].name));
    return AxesAttr::get(builder.getContext(), mesh, names);
  }

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
    return tableOf(to, [&](const BlockExchange &exchange, size_t index) {
      const HeldBlock &after = exchange.blockAfter(index);
      return after ? sizeOf((*after)[i]) : 0;
    });
  }
  Table extentsBefore(size_t i) const {
    return tableOf(from, [&](const BlockExchange &exchange, size_t index) {
      const HeldBlock &before = exchange.blockBefore(index);
      return before ? sizeOf((*before)[i]) : 0;
    });
  }

  /// `table` times the elements that go along.
  Value elements(Side &side, const Table &table) {
    if (std::optional<int64_t> known = getConstantIntValue(unit))
      return side.indices.table(
          llvm::map_to_vector(table, [&](int64_t count) { return count * *known; }));
    return side.indices.mul(side.indices.table(table), unit);
  }
  /// A flat tensor of so many elements.
  RankedTensorType flatType(Value length) const {
    return RankedTensorType::get({getConstantIntValue(length).value_or(ShapedType::kDynamic)},
                                 aten::elementTypeOf(local));
  }

  /// The concatenation of intervals [begin, end) along a dim, by rank; ranks with fewer have empty
  /// ones.
  Value pick(Side &side, Value value, int64_t dim, ArrayRef<std::vector<Run>> runsOfRank) {
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
      Value piece = emit.slice(value, dim, asSize(side, begin), asSize(side, end));
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

  /// The messages to all positions, one after the other; those to the first where all are the same.
  Value send(bool isGather) {
    unit = unitOf(from.indices, sizes, step.dims);
    // A tensor that no axis splits goes as a whole, or not at all: to whom is not the same on all
    // ranks.
    Value whole = step.dims.empty() ? emit.view(local, {getAsOpFoldResult(unit)}) : Value();
    SmallVector<Value> messages;
    Table total(from.size(), 0);
    auto sends = [&](size_t rank, size_t target) {
      const Member &member = from.members[rank];
      return member.exchange->messageSize(member.index, target) != 0;
    };
    for (const Slot &targets : slotsOf(from.size(), isGather ? 1 : groupSize(), sends)) {
      Table count;
      for (auto [member, target] : llvm::zip_equal(from.members, targets))
        count.push_back(target ? member.exchange->messageSize(member.index, *target) : 0);
      for (auto [sum, n] : llvm::zip(total, count))
        sum += n;
      if (whole) {
        Value length = elements(from, count);
        Value message = emit.slice(whole, 0, builder.getIndexAttr(0), getAsOpFoldResult(length));
        message.setType(flatType(length));
        messages.push_back(message);
        continue;
      }
      Value message = local;
      for (auto [i, dim] : llvm::enumerate(step.dims)) {
        SmallVector<std::vector<Run>> runs;
        for (auto [member, target] : llvm::zip_equal(from.members, targets)) {
          auto box = target ? member.exchange->message(member.index, *target) : std::nullopt;
          runs.push_back(box ? (*box)[i] : std::vector<Run>());
        }
        if (!isAll(runs, extentsBefore(i)))
          message = pick(from, message, dim, runs);
      }
      messages.push_back(emit.view(message, {getAsOpFoldResult(elements(from, count))}));
    }
    if (messages.empty()) // nobody needs anything
      messages.push_back(emit.zeros({builder.getIndexAttr(0)}, aten::elementTypeOf(local)));
    if (messages.size() == 1)
      return messages.front();
    Value all = emit.cat(messages, 0);
    all.setType(flatType(elements(from, total)));
    return all;
  }

  /// The `extents` of a collective on a flat tensor.
  ArrayAttr extentsOf(Side &side, ArrayRef<Table> counts, SmallVectorImpl<Value> &operands) {
    SmallVector<int64_t> fixed;
    for (const Table &count : counts) {
      Value length = elements(side, count);
      std::optional<int64_t> constant = getConstantIntValue(length);
      fixed.push_back(constant.value_or(kDynamic));
      if (!constant)
        operands.push_back(length);
    }
    return builder.getArrayAttr(builder.getDenseI64ArrayAttr(fixed));
  }

  /// Whether all of these ranks are on the side.
  static bool covers(const Side &side, const Side &ranks) {
    std::vector<int64_t> held = side.indices.getMesh().getValue().ranks();
    llvm::DenseSet<int64_t> known(held.begin(), held.end());
    return llvm::all_of(ranks.indices.getMesh().getValue().ranks(),
                        [&](int64_t rank) { return known.contains(rank); });
  }

  /// For each member of a side the elements that it sends to these peers, or gets from them.
  template <typename F> static Table sumOf(const Side &side, ArrayRef<size_t> peers, F &&count) {
    return tableOf(side, [&](const BlockExchange &exchange, size_t index) {
      int64_t sum = 0;
      for (size_t peer : peers)
        sum += count(exchange, index, peer);
      return sum;
    });
  }

  /// Those that send or get anything; between meshes only they meet.
  Side participants(SmallVectorImpl<size_t> &positions) {
    if (step.from == step.to) {
      positions = llvm::to_vector(llvm::seq<size_t>(0, groupSize()));
      return all;
    }
    const BlockExchange &exchange = step.groups.front().exchange;
    std::vector<int64_t> ranks;
    for (size_t p = 0; p < exchange.size(); ++p) {
      bool takesPart = false;
      for (size_t q = 0; q < exchange.size(); ++q)
        takesPart |= exchange.messageSize(p, q) != 0 || exchange.messageSize(q, p) != 0;
      if (!takesPart)
        continue;
      positions.push_back(p);
      ranks.push_back(step.mesh.rankAtPosition(static_cast<int64_t>(p)));
    }
    return sideOf(Mesh::ofRanks(std::move(ranks)));
  }

  /// What a rank has of what it is to have along the i-th exchanged dim.
  static std::vector<Run> common(const Member &member, size_t i) {
    const HeldBlock &before = member.exchange->blockBefore(member.index),
                    &after = member.exchange->blockAfter(member.index);
    return localIntersection((*before)[i], (*after)[i]);
  }
  /// An empty shard may be longer along a dim than what the rank has.
  bool hasExtentsAfter() const {
    return llvm::all_of(llvm::seq<size_t>(0, step.dims.size()), [&](size_t i) {
      return llvm::all_of(to.members, [&](const Member &member) {
        const HeldBlock &after = member.exchange->blockAfter(member.index);
        return sizeOf(common(member, i)) == sizeOf((*after)[i]);
      });
    });
  }

  /// Where nothing moves, every rank has all that it is to have, in order.
  Value keep() {
    unit = unitOf(from.indices, sizes, step.dims);
    bool isDirect = covers(from, to) && covers(to, from) && hasExtentsAfter();
    Value kept = local;
    for (auto [i, dim] : llvm::enumerate(step.dims)) {
      SmallVector<std::vector<Run>> runs;
      for (const Member &member : from.members) {
        auto box = member.exchange->message(member.index, member.index);
        if (isDirect)
          runs.push_back(common(member, i));
        else
          runs.push_back(box ? (*box)[i] : std::vector<Run>());
      }
      if (!isAll(runs, extentsBefore(i)))
        kept = pick(from, kept, dim, runs);
    }
    if (isDirect) {
      if (kept != local)
        kept.setType(resultType());
      return kept;
    }
    auto count = [](const BlockExchange &exchange, size_t index) {
      return exchange.messageSize(index, index);
    };
    Value length = step.dims.empty() ? unit : elements(from, tableOf(from, count));
    Value flat = cross(emit.view(kept, {getAsOpFoldResult(length)}), all,
                       elements(to, tableOf(to, count)), /*exchange=*/nullptr);
    Sizes shape(sizes);
    for (auto [i, dim] : llvm::enumerate(step.dims))
      shape[dim] = asSize(to, extentsAfter(i));
    Value block = emit.view(flat, shape);
    block.setType(resultType());
    return block;
  }

  /// From the ranks of one side to those of the other, by way of the ranks of `group`.
  Value cross(Value flat, Side &group, Value arriving, function_ref<Value(Value)> exchange) {
    if (!covers(from, group))
      flat = LeaveMeshOp::create(
          builder, loc, RankedTensorType::get({ShapedType::kDynamic}, aten::elementTypeOf(local)),
          flat, from.indices.getMesh());
    if (exchange)
      flat = exchange(flat);
    if (!covers(to, group))
      flat = EnterMeshOp::create(builder, loc, flatType(arriving), flat, to.indices.getMesh());
    return flat;
  }

  Value receive(Value flat, bool isGather) {
    auto sent = [](const BlockExchange &blocks, size_t index, size_t target) {
      return blocks.messageSize(index, target);
    };
    auto got = [](const BlockExchange &blocks, size_t index, size_t source) {
      return blocks.messageSize(source, index);
    };
    SmallVector<size_t> everybody = llvm::to_vector(llvm::seq<size_t>(0, groupSize()));
    Value arrivingHere = elements(to, sumOf(to, everybody, got));
    SmallVector<size_t> positions;
    Side group = participants(positions);
    arrived = cross(flat, group, arrivingHere, [&](Value sends) -> Value {
      SmallVector<Table> leaving, arriving;
      for (size_t peer : positions) {
        leaving.push_back(sumOf(group, peer, sent));
        arriving.push_back(sumOf(group, peer, got));
      }
      SmallVector<Value> operands;
      ArrayAttr splits = isGather ? ArrayAttr() : extentsOf(group, leaving, operands),
                concats = extentsOf(group, arriving, operands);
      // To a rank that takes no part, because its shard is empty, nothing comes.
      auto type = RankedTensorType::get({ShapedType::kDynamic}, aten::elementTypeOf(local));
      if (covers(group, to))
        type = flatType(elements(group, sumOf(group, everybody, got)));
      if (isGather)
        return AllGatherOp::create(builder, loc, TypeRange{type}, ValueRange{sends}, operands,
                                   groupOf(group), builder.getDenseI64ArrayAttr({0}), concats)
            .getResult(0);
      return AllToAllOp::create(builder, loc, TypeRange{type}, ValueRange{sends}, operands,
                                groupOf(group), builder.getDenseI64ArrayAttr({0}),
                                builder.getDenseI64ArrayAttr({0}), splits, concats)
          .getResult(0);
    });
    for (size_t i = 0; i < step.dims.size(); ++i)
      slots.push_back(slotsOfParts(i));
    SmallVector<const Slot *> cell;
    Value whole = assemble(cell);
    whole.setType(resultType());
    return whole;
  }

  /// What a rank needs of a part along the i-th exchanged dim: intervals of its own new indices.
  static std::vector<Run> shareOf(const Member &member, size_t i, size_t part) {
    const HeldBlock &after = member.exchange->blockAfter(member.index);
    const auto &parts = member.exchange->parts(i);
    return after && part < parts.size() ? localIntersection((*after)[i], parts[part])
                                        : std::vector<Run>();
  }
  SmallVector<std::vector<Run>> sharesOf(size_t i, const Slot &parts) const {
    SmallVector<std::vector<Run>> shares;
    for (auto [member, part] : llvm::zip_equal(to.members, parts))
      shares.push_back(part ? shareOf(member, i, *part) : std::vector<Run>());
    return shares;
  }
  /// One at least.
  std::vector<Slot> slotsOfParts(size_t i) const {
    size_t most = 1;
    for (const GroupExchange &member : step.groups)
      most = std::max(most, member.exchange.parts(i).size());
    std::vector<Slot> slots = slotsOf(to.size(), most, [&](size_t rank, size_t part) {
      return !shareOf(to.members[rank], i, part).empty();
    });
    if (slots.empty())
      slots.push_back(Slot(to.size(), 0));
    return slots;
  }
  static Table lengthsOf(ArrayRef<std::vector<Run>> runs) {
    Table lengths;
    for (const std::vector<Run> &list : runs)
      lengths.push_back(sizeOf(list));
    return lengths;
  }

  /// The block made of all cells that begin with these slots.
  Value assemble(SmallVectorImpl<const Slot *> &cell) {
    size_t i = cell.size();
    if (i == step.dims.size())
      return arrivedCell(cell);
    int64_t dim = step.dims[i];
    SmallVector<Value> pieces;
    SmallVector<SmallVector<std::vector<Run>>> shares;
    for (const Slot &slot : slots[i]) {
      shares.push_back(sharesOf(i, slot));
      cell.push_back(&slot);
      pieces.push_back(assemble(cell));
      cell.pop_back();
    }
    Value joined = pieces.front();
    if (pieces.size() > 1) {
      joined = emit.cat(pieces, dim);
      joined.setType(withSize(joined.getType(), dim, extentsAfter(i)));
    }
    SmallVector<std::vector<Run>> order = inOrder(shares);
    return isAll(order, extentsAfter(i)) ? joined : pick(to, joined, dim, order);
  }

  /// Where the elements of the new block, in order, are in the concatenation of all parts' shares.
  SmallVector<std::vector<Run>>
  inOrder(ArrayRef<SmallVector<std::vector<Run>>> sharesOfPart) const {
    SmallVector<std::vector<Run>> result(to.size());
    for (size_t rank = 0; rank < to.size(); ++rank) {
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
  Value arrivedCell(ArrayRef<const Slot *> cell) {
    Table begin;
    for (auto [rank, member] : llvm::enumerate(to.members)) {
      const BlockExchange &exchange = *member.exchange;
      SmallVector<size_t> parts;
      for (auto [i, slot] : llvm::enumerate(cell))
        if (std::optional<size_t> part = (*slot)[rank]; part && *part < exchange.parts(i).size())
          parts.push_back(*part);
      std::optional<size_t> source;
      if (parts.size() == cell.size())
        source = exchange.source(member.index, parts);
      int64_t at = 0;
      for (size_t peer = 0; source && peer < *source; ++peer)
        at += exchange.messageSize(peer, member.index);
      begin.push_back(at);
    }
    Table end = begin;
    Sizes shape(sizes);
    Table count(to.size(), 1);
    Type type = local.getType();
    for (auto [i, slot] : llvm::enumerate(cell)) {
      Table length = lengthsOf(sharesOf(i, *slot));
      for (auto [product, n] : llvm::zip(count, length))
        product *= n;
      shape[step.dims[i]] = asSize(to, length);
      type = withSize(type, step.dims[i], length);
    }
    for (auto [last, n] : llvm::zip(end, count))
      last += n;
    Value flat = emit.slice(arrived, 0, getAsOpFoldResult(elements(to, begin)),
                            getAsOpFoldResult(elements(to, end)));
    flat.setType(flatType(elements(to, count)));
    Value block = emit.view(flat, shape);
    block.setType(cast<RankedTensorType>(type));
    return block;
  }

  OpBuilder &builder;
  Location loc;
  const StepExchange &step;
  Emitter emit;
  Value local;
  ArrayRef<OpFoldResult> sizes;
  SmallVector<Member> members; ///< by position in the step's mesh
  Side from, to, all;
  SmallVector<std::vector<Slot>> slots; ///< of parts, for each exchanged dim
  Value unit, arrived;
};

} // namespace

Value shardc::emitExchange(OpBuilder &builder, Location loc, const StepExchange &step, Value local,
                           ArrayRef<OpFoldResult> sizes) {
  return ExchangeEmitter(builder, loc, step, local, sizes).run();
}
