// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/aten/KeptPositions.h"

#include "dialects/aten/Concatenation.h"
#include "dialects/aten/Emitter.h"
#include "dialects/aten/Fourier.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shardc::aten {

PositionSet PositionSet::all(int64_t size) {
  PositionSet set;
  set.add(0, size);
  return set;
}

int64_t PositionSet::count() const {
  int64_t count = 0;
  for (auto [begin, end] : list)
    count += end - begin;
  return count;
}

void PositionSet::add(int64_t begin, int64_t end) {
  if (begin >= end)
    return;
  SmallVector<Interval, 2> joined;
  for (const Interval &each : list)
    if (each.second < begin || each.first > end) {
      joined.push_back(each);
    } else {
      begin = std::min(begin, each.first);
      end = std::max(end, each.second);
    }
  joined.emplace_back(begin, end);
  llvm::sort(joined);
  list = std::move(joined);
}

void PositionSet::add(const PositionSet &other, int64_t shift) {
  for (auto [begin, end] : other.list)
    add(begin + shift, end + shift);
}

PositionSet PositionSet::within(int64_t begin, int64_t end) const {
  PositionSet set;
  for (auto [b, e] : list)
    set.add(std::max(b, begin) - begin, std::min(e, end) - begin);
  return set;
}

PositionSet PositionSet::intersect(const PositionSet &other) const {
  PositionSet set;
  for (auto [begin, end] : other.list)
    set.add(within(begin, end), begin);
  return set;
}

SmallVector<int64_t> PositionSet::positions() const {
  SmallVector<int64_t> each;
  for (auto [begin, end] : list)
    llvm::append_range(each, llvm::seq(begin, end));
  return each;
}

namespace {

int64_t sizeAt(Value value, int64_t dim) { return shapeOf(value)[dim]; }

/// The first position of a slice without steps whose bounds are known; nothing for any other.
std::optional<int64_t> plainStart(SliceOp op) {
  auto dim = static_cast<int64_t>(op.getDim());
  int64_t size = sizeAt(op.getSelf(), dim);
  if (op.getStart() || op.getEnd() || op.getStep() != 1 || ShapedType::isDynamic(size) ||
      ShapedType::isDynamic(sizeAt(op.getResult(), dim)))
    return std::nullopt;
  auto start = static_cast<int64_t>(op.getStaticStart());
  return std::clamp<int64_t>(start < 0 ? start + size : start, 0, size);
}

/// What a pad adds before and behind a dim; negative where it cuts off.
std::pair<int64_t, int64_t> widthsOf(ConstantPadNdOp op, int64_t dim) {
  auto at = static_cast<size_t>(2 * (typeOf(op.getSelf()).getRank() - 1 - dim));
  if (at >= op.getPad().size())
    return {0, 0};
  return {op.getPad()[at], op.getPad()[at + 1]};
}

/// The dim of a transform; nothing for other ops.
std::optional<int64_t> transformedDim(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<int64_t>>(op)
      .Case<FftC2cOp, FftR2cOp, FftC2rOp>([](auto op) { return int64_t(op.getDim()); })
      .Default([](Operation *) { return std::nullopt; });
}

/// Whether all elements are zero.
bool isZero(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
      if (!splat)
        return false;
      if (isa<FloatType>(splat.getElementType()))
        return splat.getSplatValue<APFloat>().isPosZero();
      return splat.getElementType().isInteger() && splat.getSplatValue<APInt>().isZero();
    }
    if (auto pad = dyn_cast<ConstantPadNdOp>(op); pad && !pad.getValue().isPosZero())
      return false;
    if (auto copy = dyn_cast<CopyOp>(op))
      value = copy.getSrc();
    else if (isa<ExpandOp, ViewOp, UnsqueezeOp, PermuteOp, TransposeOp, SliceOp, CloneOp,
                 ConstantPadNdOp>(op))
      value = op->getOperand(0);
    else
      return false;
  }
  return false;
}

} // namespace

PositionSet KeptPositions::read(Value value, int64_t dim) {
  if (auto known = knownRead.find({value, dim}); known != knownRead.end())
    return known->second;
  int64_t size = sizeAt(value, dim);
  PositionSet set;
  for (OpOperand &use : value.getUses())
    if (!set.isAll(size))
      set.add(readBy(use, dim, size));
  return knownRead[{value, dim}] = set;
}

PositionSet KeptPositions::readBy(OpOperand &use, int64_t dim, int64_t size) {
  Operation *op = use.getOwner();
  if (isOpTriviallyDead(op))
    return {};
  if (auto slice = dyn_cast<SliceOp>(op)) {
    if (static_cast<int64_t>(slice.getDim()) != dim)
      return read(slice.getResult(), dim);
    PositionSet set;
    if (std::optional<int64_t> start = plainStart(slice)) {
      set.add(read(slice.getResult(), dim), *start);
      return set;
    }
  }
  if (auto cat = dyn_cast<CatOp>(op)) {
    PositionSet ofResult = read(cat.getResult(), dim);
    if (static_cast<int64_t>(cat.getDim()) != dim)
      return ofResult;
    int64_t begin = 0;
    for (Value part : partsOfCat(cat.getTensors().take_front(use.getOperandNumber())))
      begin += sizeAt(part, dim);
    return ShapedType::isDynamic(sizeAt(cat.getResult(), dim))
               ? PositionSet::all(size)
               : ofResult.within(begin, begin + size);
  }
  if (auto copy = dyn_cast<CopyOp>(op))
    return use.getOperandNumber() == 0 ? PositionSet() : read(copy.getResult(), dim);
  if (std::optional<int64_t> transformed = transformedDim(op); transformed && *transformed != dim)
    return read(op->getResult(0), dim);
  return PositionSet::all(size);
}

PositionSet KeptPositions::filled(Value value, int64_t dim) {
  if (auto known = knownFilled.find({value, dim}); known != knownFilled.end())
    return known->second;
  PositionSet set = isZero(value) ? PositionSet() : filledBy(value, dim);
  return knownFilled[{value, dim}] = set;
}

PositionSet KeptPositions::filledBy(Value value, int64_t dim) {
  Operation *op = value.getDefiningOp();
  PositionSet all = PositionSet::all(sizeAt(value, dim));
  auto isOther = [&](auto op) { return static_cast<int64_t>(op.getDim()) != dim; };
  return llvm::TypeSwitch<Operation *, PositionSet>(op)
      .Case([&](SliceOp op) {
        if (isOther(op))
          return filled(op.getSelf(), dim);
        std::optional<int64_t> start = plainStart(op);
        return start ? filled(op.getSelf(), dim).within(*start, *start + sizeAt(value, dim)) : all;
      })
      .Case([&](CatOp op) {
        PositionSet set;
        int64_t begin = 0;
        for (Value part : partsOfCat(op.getTensors())) {
          set.add(filled(part, dim), begin);
          begin += isOther(op) ? 0 : sizeAt(part, dim);
        }
        return set;
      })
      .Case([&](ConstantPadNdOp op) {
        auto [before, behind] = widthsOf(op, dim);
        if (!op.getValue().isPosZero())
          return all;
        PositionSet set;
        set.add(filled(op.getSelf(), dim), before);
        return set.within(0, sizeAt(value, dim));
      })
      .Case([&](CopyOp op) { return filled(op.getSrc(), dim); })
      .Case([&](CloneOp op) { return filled(op->getOperand(0), dim); })
      .Case<FftC2cOp, FftR2cOp, FftC2rOp>(
          [&](auto op) { return isOther(op) ? filled(op.getSelf(), dim) : all; })
      .Default([&](Operation *) { return all; });
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

static Value joinParts(Emitter &emit, ArrayRef<Value> parts, int64_t dim) {
  return parts.size() == 1 ? parts.front() : emit.cat(parts, dim);
}

static Value takeOf(Emitter &emit, Value value, int64_t dim, const PositionSet &set) {
  Operation *op = value.getDefiningOp();
  auto slice = dyn_cast_or_null<SliceOp>(op);
  if (slice) { // what that is taken of may be made of parts
    bool isSame = static_cast<int64_t>(slice.getDim()) == dim;
    std::optional<int64_t> start = plainStart(slice);
    if (start && isSame) {
      PositionSet before;
      before.add(set, *start);
      return takeOf(emit, slice.getSelf(), dim, before);
    }
    if (start) {
      OpBuilder &b = emit.getBuilder();
      int64_t end = *start + sizeAt(value, static_cast<int64_t>(slice.getDim()));
      return emit.slice(takeOf(emit, slice.getSelf(), dim, set), slice.getDim(),
                        b.getIndexAttr(*start), b.getIndexAttr(end));
    }
  }
  if (set.isAll(sizeAt(value, dim)))
    return value;
  auto isOfType = [&](Value part) { return elementTypeOf(part) == elementTypeOf(value); };
  if (auto cat = dyn_cast_or_null<CatOp>(op); cat && llvm::all_of(cat.getTensors(), isOfType)) {
    bool isSame = static_cast<int64_t>(cat.getDim()) == dim;
    SmallVector<Value> parts;
    int64_t begin = 0;
    for (Value part : partsOfCat(cat.getTensors())) {
      int64_t length = sizeAt(part, dim);
      PositionSet ofPart = isSame ? set.within(begin, begin + length) : set;
      if (!ofPart.empty())
        parts.push_back(takeOf(emit, part, dim, ofPart));
      begin += length;
    }
    return joinParts(emit, parts, static_cast<int64_t>(cat.getDim()));
  }
  if (auto pad = dyn_cast_or_null<ConstantPadNdOp>(op)) {
    auto [before, behind] = widthsOf(pad, dim);
    int64_t inside = sizeAt(pad.getSelf(), dim);
    PositionSet of;
    of.add(set, -before);
    if (before >= 0 && behind >= 0 && of.within(0, inside).count() == of.count()) {
      SmallVector<int64_t> widths(pad.getPad());
      auto at = static_cast<size_t>(2 * (typeOf(value).getRank() - 1 - dim));
      if (at < widths.size())
        widths[at] = widths[at + 1] = 0;
      Value part = takeOf(emit, pad.getSelf(), dim, of);
      if (llvm::all_of(widths, [](int64_t width) { return width == 0; }))
        return part;
      return ConstantPadNdOp::create(emit.getBuilder(), emit.getLoc(), part, widths,
                                     pad.getValue());
    }
  }
  if (auto copy = dyn_cast_or_null<CopyOp>(op)) {
    Value source = takeOf(emit, copy.getSrc(), dim, set);
    // What is overwritten counts for gradients.
    return isZero(copy.getSelf())
               ? source
               : emit.binary<CopyOp>(takeOf(emit, copy.getSelf(), dim, set), source);
  }
  OpBuilder &b = emit.getBuilder();
  SmallVector<Value> parts;
  for (auto [begin, end] : set.intervals())
    parts.push_back(emit.slice(value, dim, b.getIndexAttr(begin), b.getIndexAttr(end)));
  return joinParts(emit, parts, dim);
}

Value takePositions(OpBuilder &builder, Location loc, Value value, int64_t dim,
                    const PositionSet &positions) {
  Emitter emit(builder, loc);
  return takeOf(emit, value, dim, positions);
}

Value spreadPositions(OpBuilder &builder, Location loc, Value value, int64_t dim,
                      const PositionSet &positions, int64_t size) {
  if (positions.isAll(size))
    return value;
  Emitter emit(builder, loc);
  SmallVector<Value> parts;
  int64_t taken = 0, done = 0;
  for (auto [i, interval] : llvm::enumerate(positions.intervals())) {
    auto [begin, end] = interval;
    bool isLast = i + 1 == positions.intervals().size();
    Value part = positions.intervals().size() == 1
                     ? value
                     : emit.slice(value, dim, builder.getIndexAttr(taken),
                                  builder.getIndexAttr(taken + end - begin));
    SmallVector<int64_t> widths(static_cast<size_t>(2 * (typeOf(value).getRank() - dim)), 0);
    widths[widths.size() - 2] = begin - done;
    widths.back() = isLast ? size - end : 0;
    if (widths.back() != 0 || widths[widths.size() - 2] != 0)
      part = ConstantPadNdOp::create(builder, loc, part, widths, APFloat(0.0));
    parts.push_back(part);
    taken += end - begin;
    done = end;
  }
  return joinParts(emit, parts, dim);
}

/// The tensor of which the parts of a join are all elements, in order; null for other joins.
static Value wholeOf(CatOp cat) {
  auto dim = static_cast<int64_t>(cat.getDim());
  Value whole;
  int64_t done = 0;
  for (Value part : partsOfCat(cat.getTensors())) {
    auto slice = part.getDefiningOp<SliceOp>();
    if (!slice || static_cast<int64_t>(slice.getDim()) != dim ||
        (whole && slice.getSelf() != whole))
      return {};
    std::optional<int64_t> start = plainStart(slice);
    if (!start || *start != done)
      return {};
    whole = slice.getSelf();
    done += sizeAt(part, dim);
  }
  return whole && sizeAt(whole, dim) == done ? whole : Value();
}

void forwardSlices(Value value) {
  SmallVector<Value> open{value};
  while (!open.empty()) {
    Value next = open.pop_back_val();
    for (Operation *user : llvm::make_early_inc_range(next.getUsers())) {
      if (auto slice = dyn_cast<SliceOp>(user); slice && plainStart(slice)) {
        auto dim = static_cast<int64_t>(slice.getDim());
        OpBuilder builder(slice);
        PositionSet set = PositionSet::all(sizeAt(slice.getResult(), dim)), at;
        at.add(set, *plainStart(slice));
        Value part = takePositions(builder, slice.getLoc(), next, dim, at);
        if (auto again = part.getDefiningOp<SliceOp>(); again && again.getSelf() == next) {
          again.erase();
          continue;
        }
        slice.getResult().replaceAllUsesWith(part);
        open.push_back(part);
      } else if (auto cat = dyn_cast<CatOp>(user)) {
        if (Value whole = wholeOf(cat))
          cat.getResult().replaceAllUsesWith(whole);
      }
    }
  }
}

} // namespace shardc::aten
