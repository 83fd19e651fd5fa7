// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/MovePieces.h"

#include "passes/localize/Exchange.h"

#include <map>
#include <set>

using namespace mlir;
using namespace shardc;

namespace {

using Sizes = SmallVector<OpFoldResult>;
using Table = SmallVector<int64_t>;      ///< a number for every position of the mesh
using Intervals = std::vector<Run>;      ///< ascending
using Holdings = SmallVector<Intervals>; ///< for every position of the mesh

/// In order, without overlaps.
Intervals unite(Intervals runs) {
  llvm::sort(runs, [](const Run &a, const Run &b) { return a.begin < b.begin; });
  Intervals united;
  for (const Run &run : runs)
    if (united.empty() || united.back().end < run.begin)
      united.push_back(run);
    else
      united.back().end = std::max(united.back().end, run.end);
  return united;
}

/// Where the elements of `run`, all of which are held, are among those that are.
Run localRun(const Intervals &held, const Run &run) {
  int64_t base = 0;
  for (const Run &piece : held) {
    if (run.begin < piece.end)
      return {base + run.begin - piece.begin, base + run.end - piece.begin};
    base += piece.size();
  }
  return {0, 0};
}

/// Elements of a source, all of them or every so many: where they are, and who wants which.
struct Stock {
  Value local;
  Sizes sizes;
  int64_t size;
  Holdings held, wanted;
  std::vector<unsigned> axes; ///< that split the dim, ascending
  /// After an exchange that brought only what ranks lacked: what each had before.
  Value kept = {};
  Holdings keptHeld = {};
};

/// What of `wanted` is not in `held`; both are in order.
Intervals without(const Intervals &wanted, const Intervals &held) {
  Intervals rest;
  for (Run run : wanted) {
    for (const Run &own : held) {
      if (own.end <= run.begin || own.begin >= run.end)
        continue;
      if (run.begin < own.begin)
        rest.push_back({run.begin, own.begin});
      run.begin = std::min(own.end, run.end);
    }
    if (run.begin < run.end)
      rest.push_back(run);
  }
  return rest;
}

/// What a run has in common with `held` where that is one interval at most, and otherwise nothing.
std::optional<Run> commonRun(const Run &run, const Intervals &held) {
  Run common{run.end, run.end};
  for (const Run &own : held) {
    Run part{std::max(run.begin, own.begin), std::min(run.end, own.end)};
    if (part.begin >= part.end)
      continue;
    if (common.begin < common.end && part.begin != common.end)
      return std::nullopt;
    common = {common.begin < common.end ? common.begin : part.begin, part.end};
  }
  return common;
}

/// A part of a target, from one stock.
struct Part {
  unsigned stock = kNewElements;
  unsigned source = 0; ///< of new elements
  bool isReversed = false;
  SmallVector<Run> runs; ///< by position
};

class PieceMover {
public:
  PieceMover(Localizer &localizer, OpBuilder &builder, int64_t dim, ArrayRef<PieceSource> sources)
      : localizer(localizer), builder(builder), emit(localizer.emitter(builder)), dim(dim),
        sources(sources), mesh(localizer.getMesh().getValue()) {}

  SmallVector<Value> run(ArrayRef<PieceTarget> targets, ArrayRef<PieceTarget> beside) {
    SmallVector<SmallVector<Part>> parts;
    if (!beside.empty())
      takeInOrder(targets, beside);
    for (const PieceTarget &target : targets)
      parts.push_back(partsOf(target));
    for (const PieceTarget &target : beside)
      partsOf(target); // says what is wanted
    for (Stock &stock : stocks)
      for (Intervals &wanted : stock.wanted)
        wanted = unite(std::move(wanted));
    fetch();
    SmallVector<Value> values;
    for (auto [target, list] : llvm::zip(targets, parts))
      values.push_back(assemble(target, list));
    return values;
  }

private:
  int64_t numPositions() const { return mesh.numDevices(); }
  OpFoldResult asSize(const Table &table) {
    return getAsOpFoldResult(localizer.indices(builder).table(table));
  }
  RankedTensorType withSize(Value value, const Table &table) const {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = llvm::all_equal(table) ? table.front() : ShapedType::kDynamic;
    return RankedTensorType::get(shape, type.getElementType());
  }
  static Table lengthsOf(ArrayRef<Run> runs) {
    return Table(llvm::map_range(runs, [](const Run &run) { return run.size(); }));
  }
  static Table extentsOf(ArrayRef<Intervals> held) {
    return Table(llvm::map_range(held, [](const Intervals &runs) { return sizeOf(runs); }));
  }
  static bool isEmpty(ArrayRef<Run> runs) {
    return llvm::all_of(runs, [](const Run &run) { return run.size() == 0; });
  }

  /// The most intervals that a rank has.
  static size_t mostOf(const Holdings &held) {
    size_t most = 0;
    for (const Intervals &runs : held)
      most = std::max(most, runs.size());
    return most;
  }

  /// [begin, end) on each rank, `step` apart.
  Value cut(Value value, ArrayRef<Run> runs, int64_t step = 1) {
    Table begin, end, length;
    for (const Run &run : runs) {
      begin.push_back(run.begin);
      end.push_back(run.end);
      length.push_back(ceilDiv(run.size(), step));
    }
    Value part = emit.slice(value, dim, asSize(begin), asSize(end), step);
    part.setType(withSize(value, length));
    return part;
  }
  Value join(ArrayRef<Value> parts, const Table &length) {
    if (parts.size() == 1)
      return parts.front();
    Value whole = emit.cat(parts, dim);
    whole.setType(withSize(whole, length));
    return whole;
  }

  /// The stock that a piece is of, and the piece as one of it, with a step of 1 or -1.
  unsigned stockOf(Piece &piece) {
    int64_t step = std::abs(piece.step);
    int64_t first =
        step == 1 ? 0 : std::min(piece.start, piece.start + piece.step * (piece.count - 1));
    int64_t count = step == 1 ? sources[piece.source].dim.size : piece.count;
    auto [entry, isNew] =
        known.try_emplace({piece.source, first, step, count}, static_cast<unsigned>(stocks.size()));
    if (isNew)
      stocks.push_back(makeStock(sources[piece.source], first, step, count));
    piece.start = (piece.start - first) / step;
    piece.step /= step;
    return entry->second;
  }

  /// Stocks in the order of the sources, so that ops which say of each other what is made beside
  /// them have the same exchange.
  void takeInOrder(ArrayRef<PieceTarget> targets, ArrayRef<PieceTarget> beside) {
    Pieces all;
    for (ArrayRef<PieceTarget> list : {targets, beside})
      for (const PieceTarget &target : list)
        llvm::copy_if(target.pieces, std::back_inserter(all), [&](const Piece &piece) {
          return static_cast<bool>(sources[piece.source].local);
        });
    llvm::sort(all, [](const Piece &a, const Piece &b) {
      return std::tuple(a.source, a.start, a.step, a.count) <
             std::tuple(b.source, b.start, b.step, b.count);
    });
    for (Piece &piece : all)
      stockOf(piece);
  }

  Stock makeStock(const PieceSource &source, int64_t first, int64_t step, int64_t count) {
    const Holdings &own = source.dim.runs;
    Stock stock{source.local, source.sizes, count, own, Holdings(numPositions()), source.dim.axes};
    if (step == 1)
      return stock;
    // A rank takes those out of each of its intervals.
    stock.held.assign(numPositions(), Intervals());
    SmallVector<Value> parts;
    for (size_t k = 0; k < mostOf(own); ++k) {
      SmallVector<Run> runs(numPositions());
      for (auto [position, intervals] : llvm::enumerate(own)) {
        if (k >= intervals.size())
          continue;
        auto numberOf = [&](int64_t index) {
          return index <= first ? 0 : std::min(count, ceilDiv(index - first, step));
        };
        Run numbers{numberOf(intervals[k].begin), numberOf(intervals[k].end)};
        if (numbers.size() == 0)
          continue;
        int64_t base = localRun(intervals, intervals[k]).begin - intervals[k].begin;
        runs[position] = {base + first + step * numbers.begin,
                          base + first + step * (numbers.end - 1) + 1};
        stock.held[position].push_back(numbers);
      }
      if (parts.empty() || !isEmpty(runs))
        parts.push_back(cut(source.local, runs, step));
    }
    stock.local = join(parts, extentsOf(stock.held));
    stock.sizes[dim] = asSize(extentsOf(stock.held));
    return stock;
  }

  /// Parts of a target, of which each rank has at most one interval, in order. Also says what is
  /// wanted.
  SmallVector<Part> partsOf(const PieceTarget &target) {
    SmallVector<Part> parts;
    for (size_t k = 0; k < mostOf(target.dim.runs); ++k) {
      int64_t offset = 0;
      for (Piece piece : target.pieces) {
        bool isNew = !sources[piece.source].local;
        Part part;
        part.source = piece.source;
        part.runs.resize(numPositions());
        if (!isNew)
          part.stock = stockOf(piece);
        part.isReversed = !isNew && piece.step < 0;
        for (auto [position, runs] : llvm::enumerate(target.dim.runs)) {
          if (k >= runs.size())
            continue;
          int64_t begin = std::max(runs[k].begin - offset, int64_t(0));
          int64_t end = std::min(runs[k].end - offset, piece.count);
          if (begin >= end)
            continue;
          Run &run = part.runs[position];
          run = {piece.start + begin, piece.start + end};
          if (part.isReversed)
            run = {piece.start - end + 1, piece.start - begin + 1};
          if (!isNew)
            stocks[part.stock].wanted[position].push_back(run);
        }
        if (!isNew)
          wantingAxes[part.stock].insert(target.dim.axes.begin(), target.dim.axes.end());
        if (!isEmpty(part.runs))
          parts.push_back(std::move(part));
        offset += piece.count;
      }
    }
    return parts;
  }

  /// One exchange for all stocks that are split over the same axes; afterwards a stock holds what
  /// is wanted of it.
  void fetch() {
    std::map<std::pair<std::vector<unsigned>, const void *>, SmallVector<unsigned>> together;
    for (auto [i, stock] : llvm::enumerate(stocks))
      if (!stock.axes.empty())
        together[{stock.axes, aten::elementTypeOf(stock.local).getAsOpaquePointer()}].push_back(
            static_cast<unsigned>(i));
    // In the order of the pieces, not of pointers.
    SmallVector<SmallVector<unsigned>> groups;
    for (auto &[key, members] : together)
      groups.push_back(members);
    llvm::sort(groups, [](const auto &a, const auto &b) { return a.front() < b.front(); });
    for (ArrayRef<unsigned> members : groups)
      fetchTogether(members);
  }

  void fetchTogether(ArrayRef<unsigned> members) {
    Holdings held(numPositions()), wanted(numPositions());
    SmallVector<int64_t> offsets;
    std::set<unsigned> axes;
    int64_t offset = 0;
    auto add = [&](Intervals &list, Run run) {
      run = {run.begin + offset, run.end + offset};
      if (!list.empty() && list.back().end == run.begin)
        list.back().end = run.end;
      else
        list.push_back(run);
    };
    for (unsigned member : members) {
      const Stock &stock = stocks[member];
      axes.insert(stock.axes.begin(), stock.axes.end());
      axes.insert(wantingAxes[member].begin(), wantingAxes[member].end());
      for (int64_t position = 0; position < numPositions(); ++position) {
        for (const Run &run : stock.held[position])
          add(held[position], run);
        for (const Run &run : stock.wanted[position])
          add(wanted[position], run);
      }
      offsets.push_back(offset);
      offset += stock.size;
    }
    StepExchange exchange = exchangeOf({axes.begin(), axes.end()}, held, wanted);
    if (!exchange.crosses())
      return;
    // What all ranks get alike is gathered, and a shard that goes to another rank as it is needs no
    // cut. Otherwise a rank gets what it lacks alone: what it has already does not wait for others.
    bool keeps =
        !tellsAllTheSame(exchange) && !permutationOf(exchange) &&
        llvm::all_of(members, [&](unsigned member) { return isKeptWhole(stocks[member]); });
    if (keeps) {
      for (auto [want, have] : llvm::zip_equal(wanted, held))
        want = without(want, have);
      exchange = exchangeOf({axes.begin(), axes.end()}, held, wanted);
    }
    SmallVector<Value> locals;
    for (unsigned member : members)
      locals.push_back(stocks[member].local);
    Sizes sizes = stocks[members.front()].sizes;
    sizes[dim] = asSize(extentsOf(held));
    Value got = emitExchange(builder, localizer.getOp()->getLoc(), exchange,
                             join(locals, extentsOf(held)), sizes);
    for (auto [member, shift] : llvm::zip(members, offsets)) {
      Stock &stock = stocks[member];
      if (keeps) {
        stock.kept = stock.local;
        stock.keptHeld = std::move(stock.held);
      }
      stock.local = got;
      stock.held = wanted;
      shifts[member] = shift;
    }
  }

  StepExchange exchangeOf(std::vector<unsigned> axes, const Holdings &held,
                          const Holdings &wanted) {
    StepExchange exchange{mesh, mesh, mesh, std::move(axes), {dim}, {}};
    Mesh byPosition(mesh.axes); // without device ids, ranks are positions
    for (std::vector<int64_t> &group : byPosition.groups(exchange.axes)) {
      std::vector<HeldBlock> before, after;
      for (int64_t position : group) {
        before.push_back({{held[position]}});
        after.push_back({{wanted[position]}});
      }
      exchange.groups.push_back(
          {std::move(group), BlockExchange(std::move(before), std::move(after))});
    }
    return exchange;
  }

  /// Whether what a rank has of any interval that it wants is one interval.
  static bool isKeptWhole(const Stock &stock) {
    return llvm::all_of(llvm::zip_equal(stock.wanted, stock.held), [](auto pair) {
      const auto &[wanted, held] = pair;
      return llvm::all_of(wanted, [&](const Run &run) { return commonRun(run, held).has_value(); });
    });
  }

  /// Intervals of a value, by position.
  struct Cutting {
    Value value;
    Table extents;
    SmallVector<Run> runs;
    bool isReversed;
    /// Of rows that the rank has: their number is written down even if all are meant.
    bool isKept = false;
  };

  Value assemble(const PieceTarget &target, ArrayRef<Part> parts) {
    SmallVector<Cutting> cuttings;
    for (const Part &part : parts) {
      if (part.stock == kNewElements) {
        cuttings.push_back({newElements(target, part), lengthsOf(part.runs), {}, false});
        for (int64_t length : lengthsOf(part.runs))
          cuttings.back().runs.push_back({0, length});
        continue;
      }
      for (Cutting &cutting : cuttingsOf(part))
        if (cuttings.empty() || !goOn(cuttings.back(), cutting))
          cuttings.push_back(std::move(cutting));
    }
    SmallVector<Value> values;
    for (const Cutting &cutting : cuttings) {
      bool isWhole = llvm::all_of(llvm::zip(cutting.runs, cutting.extents), [](auto pair) {
        return std::get<0>(pair) == Run{0, std::get<1>(pair)};
      });
      bool isPlain = !cutting.isKept || llvm::all_equal(cutting.extents);
      Value value = isWhole && isPlain ? cutting.value : cut(cutting.value, cutting.runs);
      if (cutting.isReversed)
        value = aten::FlipOp::create(builder, emit.getLoc(), value, ArrayRef<int64_t>(dim));
      values.push_back(emit.cast(value, target.type.getElementType()));
    }
    if (values.empty())
      values.push_back(emit.zeros(target.sizes, target.type.getElementType()));
    Value joined = values.size() == 1 ? values.front() : emit.cat(values, dim);
    if (joined.getType() != target.type)
      joined.setType(target.type);
    return joined;
  }

  /// Where a part of a stock is: what came before what the rank has, that, and what came behind it.
  SmallVector<Cutting> cuttingsOf(const Part &part) {
    const Stock &stock = stocks[part.stock];
    int64_t shift = shifts.lookup(part.stock);
    auto cuttingOf = [&](Value value, const Holdings &held, ArrayRef<Run> runs, int64_t by) {
      Cutting cutting{value, extentsOf(held), {}, part.isReversed};
      for (auto [run, intervals] : llvm::zip_equal(runs, held))
        cutting.runs.push_back(
            run.size() == 0 ? Run{0, 0} : localRun(intervals, {run.begin + by, run.end + by}));
      return cutting;
    };
    if (!stock.kept)
      return {cuttingOf(stock.local, stock.held, part.runs, shift)};
    SmallVector<Run> before, own, behind;
    for (auto [run, held] : llvm::zip_equal(part.runs, stock.keptHeld)) {
      Run common = *commonRun(run, held);
      own.push_back(common);
      before.push_back({run.begin, common.begin});
      behind.push_back({common.end, run.end});
    }
    SmallVector<Cutting> cuttings;
    if (!isEmpty(before))
      cuttings.push_back(cuttingOf(stock.local, stock.held, before, shift));
    if (!isEmpty(own)) {
      cuttings.push_back(cuttingOf(stock.kept, stock.keptHeld, own, 0));
      cuttings.back().isKept = true;
    }
    if (!isEmpty(behind))
      cuttings.push_back(cuttingOf(stock.local, stock.held, behind, shift));
    if (part.isReversed)
      std::reverse(cuttings.begin(), cuttings.end());
    return cuttings;
  }

  /// Makes `last` longer by `next` where that goes on where it ends, on all ranks.
  static bool goOn(Cutting &last, const Cutting &next) {
    if (last.value != next.value || last.isReversed || next.isReversed)
      return false;
    SmallVector<Run> both(last.runs);
    for (auto [run, more] : llvm::zip(both, next.runs)) {
      if (more.size() == 0)
        continue;
      if (run.size() != 0 && run.end != more.begin)
        return false;
      run = {run.size() == 0 ? more.begin : run.begin, more.end};
    }
    last.runs = std::move(both);
    return true;
  }

  Value newElements(const PieceTarget &target, const Part &part) {
    Sizes sizes(target.sizes);
    sizes[dim] = asSize(lengthsOf(part.runs));
    return emit.full(sizes,
                     newNumber(emit, sources[part.source].value, target.type.getElementType()));
  }

  Localizer &localizer;
  OpBuilder &builder;
  Emitter emit;
  int64_t dim;
  ArrayRef<PieceSource> sources;
  const Mesh &mesh;
  std::vector<Stock> stocks;
  std::map<std::tuple<unsigned, int64_t, int64_t, int64_t>, unsigned> known;
  std::map<unsigned, std::set<unsigned>> wantingAxes;
  llvm::DenseMap<unsigned, int64_t> shifts; ///< of a stock in what came with others
};

} // namespace

Value shardc::newNumber(Emitter &emit, double number, Type elementType) {
  auto whole = static_cast<int64_t>(elementType.isInteger(1) ? number != 0 : number);
  return isa<FloatType>(elementType) ? emit.scalar(number, elementType)
                                     : emit.integer(whole, elementType);
}

HeldDim shardc::heldDim(const Mesh &mesh, const SplitDim &dim) {
  HeldDim held{dim.size, {}, {}};
  for (int64_t position = 0; position < mesh.numDevices(); ++position)
    held.runs.push_back(dim.split.runs(dim.size, mesh.coordinateOfPosition(position)));
  for (const AxisSplit &axis : dim.split.axes)
    held.axes.push_back(axis.axis);
  llvm::sort(held.axes);
  return held;
}

SmallVector<Value> shardc::movePieces(Localizer &localizer, OpBuilder &builder, int64_t dim,
                                      ArrayRef<PieceSource> sources, ArrayRef<PieceTarget> targets,
                                      ArrayRef<PieceTarget> beside) {
  return PieceMover(localizer, builder, dim, sources).run(targets, beside);
}
