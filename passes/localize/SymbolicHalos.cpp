// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/SymbolicHalos.h"

#include "dialects/dist/FunctionAttributes.h"
#include "passes/localize/MovePieces.h"
#include "passes/localize/core/FarthestNeighbour.h"

using namespace mlir;
using namespace shardc;

/// A multiple of what the expression divides by, and of what it takes remainders by.
static uint64_t divisorOf(AffineExpr expr) {
  uint64_t product = 1;
  expr.walk([&](AffineExpr part) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(part);
    auto divisor = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS()) : AffineConstantExpr();
    bool divides = binary && binary.getKind() != AffineExprKind::Add &&
                   binary.getKind() != AffineExprKind::Mul;
    if (divides && divisor && divisor.getValue() > 0)
      product = llvm::SaturatingMultiply(product, static_cast<uint64_t>(divisor.getValue()));
  });
  return product;
}

void shardc::findFarthest(Localizer &localizer, SymbolicHalo &halo) {
  std::optional<int64_t> origin = halo.line ? std::optional<int64_t>(0) // the line has its own
                                            : getConstantIntValue(halo.origin);
  dist::SizeAttr size = halo.size.size, count = halo.count.size;
  auto isChunked = [](const DimSplit &split) {
    return split.axes.size() == 1 && split.axes.front().isPlainChunk();
  };
  if (!origin || halo.isReversed || !size || !count || size.getSymbols() != count.getSymbols() ||
      size.getSymbols().size() != 1 || !isChunked(halo.image) || !(halo.image == halo.positions))
    return;
  StringRef name = size.getSymbols().front();
  dist::SymbolAttr symbol =
      dist::findSymbol(localizer.getOp()->getParentOfType<func::FuncOp>(), name);
  if (!symbol)
    return;
  auto valueOf = [](dist::SizeAttr expression) {
    return [expression](int64_t number) {
      return expression.evaluate([&](StringRef) { return std::optional(number); });
    };
  };
  ChunkedWindows windows{valueOf(size), valueOf(count)};
  windows.least = symbol.getMin();
  windows.most = symbol.getMax();
  if (ShapedType::isDynamic(windows.most)) // it has no largest value
    windows.most = std::numeric_limits<int64_t>::max();
  windows.divisor = static_cast<int64_t>(std::min<uint64_t>(
      llvm::SaturatingMultiply(divisorOf(size.getExpr()), divisorOf(count.getExpr())), INT32_MAX));
  windows.ranks = halo.image.axes.front().count;
  windows.origin = *origin;
  windows.stride = halo.stride;
  windows.extent = halo.extent;
  if (const std::optional<aten::LookupLine> &line = halo.line) {
    if (line->followsSizes())
      return;
    windows.stride = 2 * line->numerator;
    windows.per = 2 * line->denominator;
    windows.origin =
        line->half * line->numerator - (line->shift + 2 * line->before) * line->denominator;
    windows.extent = line->before + line->after + 1;
    windows.isCut = true;
  }
  halo.farthest = farthestNeighbour(windows);
  // What rounding adds for large positions reaches into the next chunk at most, as one element
  // does.
  if (halo.line && halo.farthest)
    halo.farthest = std::max<int64_t>(*halo.farthest, 1);
}

/// The elements that lookups at the positions of an interval that is not empty may read.
static IndexInterval elementsOnLine(LocalIndices &indices, const SymbolicHalo &halo,
                                    const IndexInterval &positions) {
  const aten::LookupLine &line = *halo.line;
  Value zero = indices.constant(0), one = indices.constant(1), two = indices.constant(2);
  Value size = indices.global(halo.size), last = indices.sub(size, one);
  Value numerator = indices.constant(line.numerator),
        denominator = indices.constant(line.denominator);
  if (line.followsSizes()) {
    Value shorter = indices.constant(line.alignsCorners ? 1 : 0);
    numerator = indices.sub(size, shorter);
    denominator = indices.max(indices.sub(indices.global(halo.count), shorter), one);
  }
  // The bound of what one position reads, with what rounding adds to it.
  auto bound = [&](Value position, bool isFirst) {
    Value twice = indices.add(indices.mul(position, two), indices.constant(line.half));
    Value difference = indices.sub(indices.mul(twice, numerator),
                                   indices.mul(indices.constant(line.shift), denominator));
    Value at = indices.floorDiv(difference, indices.mul(denominator, two));
    Value large = indices.constant(aten::LookupLine::kExact);
    Value rounding = indices.add(indices.floorDiv(indices.max(position, zero), large),
                                 indices.floorDiv(indices.max(at, zero), large));
    at = isFirst ? indices.sub(indices.sub(at, indices.constant(line.before)), rounding)
                 : indices.add(indices.add(at, indices.constant(line.after)), rounding);
    return indices.max(indices.min(at, last), zero);
  };
  return {bound(positions.begin, true),
          indices.min(indices.add(bound(indices.sub(positions.end, one), false), one), size)};
}

IndexCover shardc::coverOf(LocalIndices &indices, const SymbolicHalo &halo,
                           CoordinateOf coordinateOf) {
  IndexInterval own = indices.interval(halo.count, halo.positions, coordinateOf);
  Value zero = indices.constant(0), one = indices.constant(1), size = indices.global(halo.size);
  Value count = indices.lengthOf(own), any = indices.min(count, one);
  Value stride = indices.constant(halo.stride);
  Value origin = halo.origin ? halo.origin : zero;
  Value begin = indices.add(indices.mul(own.begin, stride), origin);
  Value end = indices.add(begin, indices.add(indices.mul(indices.sub(count, one), stride),
                                             indices.constant(halo.extent)));
  if (halo.isReversed) {
    begin = indices.sub(size, own.end);
    end = indices.sub(size, own.begin);
  }
  if (halo.line) {
    IndexInterval elements = elementsOnLine(indices, halo, own);
    begin = elements.begin;
    end = elements.end;
  }
  if (halo.coversParts) {
    Value positions = indices.max(indices.global(halo.count), one);
    begin = indices.floorDiv(indices.mul(own.begin, size), positions);
    end = indices.ceilDiv(indices.mul(own.end, size), positions);
  }
  auto inImage = [&](Value index) { return indices.min(indices.max(index, zero), size); };
  IndexCover cover;
  cover.elements.begin = inImage(begin);
  cover.length = indices.mul(any, indices.sub(inImage(end), cover.elements.begin));
  cover.elements.end = indices.add(cover.elements.begin, cover.length);
  // Without positions there is as much padding as has no place for one.
  int64_t none = std::max<int64_t>(halo.extent - halo.stride, 0);
  Value before = indices.max(indices.sub(indices.min(end, zero), begin), zero);
  Value after = indices.max(indices.sub(end, indices.max(begin, size)), zero);
  before = indices.add(indices.mul(any, before),
                       indices.mul(indices.sub(one, any), indices.constant(none)));
  cover.inside = {before, indices.add(before, cover.length)};
  cover.size = indices.add(cover.inside.end, indices.mul(any, after));
  cover.begin = indices.sub(cover.elements.begin, before);
  return cover;
}

IndexCover shardc::ownCover(LocalIndices &indices, const SymbolicHalo &halo) {
  const Mesh &mesh = indices.getMesh().getValue();
  return coverOf(indices, halo,
                 [&](int64_t position) { return mesh.coordinateOfPosition(position); });
}

namespace {

/// One halo of one op.
class HaloMove {
public:
  HaloMove(LocalIndices indices, const SymbolicHalo &halo, SmallVectorImpl<OpFoldResult> &sizes)
      : indices(indices), emit(this->indices.getBuilder(), this->indices.getLoc()), halo(halo),
        sizes(sizes) {}

  Value cover(Value local, double fill) {
    Type elementType = aten::elementTypeOf(local);
    IndexCover cover = ownCover(indices, halo);
    SmallVector<Value> parts = fetch(local, cover);
    auto padding = [&](Value length) {
      SmallVector<OpFoldResult> all(sizes.begin(), sizes.end());
      all[halo.dim] = getAsOpFoldResult(length);
      return emit.full(all, newNumber(emit, fill, elementType));
    };
    parts.insert(parts.begin(), padding(cover.inside.begin));
    parts.push_back(padding(indices.sub(cover.size, cover.inside.end)));
    return join(parts, cover.size);
  }

  Value elements(Value local) {
    IndexCover cover = ownCover(indices, halo);
    return join(fetch(local, cover), cover.length);
  }

  Value sum(Value covered) {
    auto elements = [&](CoordinateOf at) { return coverOf(indices, halo, at).elements; };
    auto image = [&](CoordinateOf at) { return indices.interval(halo.size, halo.image, at); };
    IntervalExchange exchange(indices, halo.dim, halo.image, sizes, halo.farthest);
    IntervalExchange::Arrived arrived = exchange.run(covered, elements, image);
    IndexInterval own = exchange.own(image), made = exchange.own(elements);
    // What this rank has for its own elements, and zeros around it.
    IndexInterval at = indices.within(own, made);
    Value length = indices.lengthOf(own);
    Value sum = join({zeros(covered, at.begin), slice(covered, indices.within(made, own)),
                      zeros(covered, indices.sub(length, at.end))},
                     length);
    SmallVector<Value> places;
    for (auto [peer, count] : llvm::enumerate(arrived.counts))
      places.push_back(emit.range(indices.within(own, exchange.of(elements, peer)).begin, count));
    return aten::IndexPutOp::create(indices.getBuilder(), indices.getLoc(), sum,
                                    ValueRange{emit.cat(places, 0)}, arrived.value,
                                    ArrayRef<int64_t>(halo.dim), /*accumulate=*/true);
  }

private:
  /// What a rank has of what its positions cover, and what comes before and behind that.
  SmallVector<Value> fetch(Value local, const IndexCover &cover) {
    auto elements = [&](CoordinateOf at) { return coverOf(indices, halo, at).elements; };
    auto image = [&](CoordinateOf at) { return indices.interval(halo.size, halo.image, at); };
    const Mesh &mesh = indices.getMesh().getValue();
    IndexInterval held =
        image([&](int64_t position) { return mesh.coordinateOfPosition(position); });
    IndexInterval keptPart = indices.within(held, cover.elements);
    Value kept = slice(local, keptPart);
    if (halo.image.empty())
      return {kept};
    IntervalExchange exchange(indices, halo.dim, halo.image, sizes, halo.farthest);
    IntervalExchange::Arrived arrived = exchange.run(local, image, elements);
    // Ranks have the elements in the order of their group: from those before this one comes what is
    // before its own.
    Value before = indices.within(cover.elements, held).begin;
    Value all = indices.sub(cover.length, indices.lengthOf(keptPart));
    return {slice(arrived.value, {indices.constant(0), before}), kept,
            slice(arrived.value, {before, all})};
  }

  Value slice(Value value, const IndexInterval &interval) {
    return emit.slice(value, halo.dim, getAsOpFoldResult(interval.begin),
                      getAsOpFoldResult(interval.end));
  }
  Value zeros(Value like, Value length) {
    SmallVector<OpFoldResult> all(sizes.begin(), sizes.end());
    all[halo.dim] = getAsOpFoldResult(length);
    return emit.zeros(all, aten::elementTypeOf(like));
  }
  /// The parts one after the other, which `sizes` say from now on.
  Value join(ArrayRef<Value> parts, Value length) {
    sizes[halo.dim] = getAsOpFoldResult(length);
    SmallVector<int64_t> shape;
    for (OpFoldResult size : sizes)
      shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
    Value joined = parts.size() == 1 ? parts.front() : emit.cat(parts, halo.dim);
    joined.setType(RankedTensorType::get(shape, aten::elementTypeOf(joined)));
    return joined;
  }

  LocalIndices indices;
  Emitter emit;
  const SymbolicHalo &halo;
  SmallVectorImpl<OpFoldResult> &sizes;
};

} // namespace

Value shardc::coveredPart(LocalIndices indices, const SymbolicHalo &halo, Value local,
                          SmallVectorImpl<OpFoldResult> &sizes, double fill) {
  return HaloMove(indices, halo, sizes).cover(local, fill);
}

Value shardc::coveredElements(LocalIndices indices, const SymbolicHalo &halo, Value local,
                              SmallVectorImpl<OpFoldResult> &sizes) {
  return HaloMove(indices, halo, sizes).elements(local);
}

Value shardc::sumOfCovered(LocalIndices indices, const SymbolicHalo &halo, Value covered,
                           SmallVectorImpl<OpFoldResult> &sizes) {
  return HaloMove(indices, halo, sizes).sum(covered);
}
