// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Neighborhood attention: products of queries with the keys around them, weighted sums of the
// values there, and the adjoint. Keys are read in memory, where each query's neighborhood lies.

#include "dialects/aten/Neighborhood.h"
#include "lowering/linalg/Patterns.h"
#include "lowering/linalg/ScalarBuilder.h"
#include "lowering/linalg/SpatialLoops.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace shardc;

namespace {

constexpr size_t kBatch = aten::kNeighborhoodBatch;

/// One spatial dim: what a query there sees. Positions are those of a line of elements that are
/// equal modulo the dilation, unless they are called local: those are in a tensor of this rank.
class Line {
public:
  Line(const IndexBuilder &index, const aten::Neighborhood &neighborhood,
       ArrayRef<OpFoldResult> place)
      : index(index), of(neighborhood) {
    using Place = aten::NeighborhoodPlace;
    auto number = [&](Place which) { return index.of(place[static_cast<size_t>(which)]); };
    size = number(Place::Size);
    firstQuery = number(Place::FirstQuery);
    firstKey = number(Place::FirstKey);
    isLengthKnown = getConstantIntValue(place[static_cast<size_t>(Place::Size)]).has_value();
  }

  /// Enters the line of the element that is `local` elements behind `first`; returns where it is.
  Value enter(Value local, Value first) {
    Value at = index.add(local, first);
    rest = index.constant(0);
    length = size;
    if (of.dilation == 1)
      return at;
    Value step = index.constant(of.dilation);
    rest = arith::RemUIOp::create(index.b, index.loc, at, step);
    length = index.ceilDiv(index.sub(size, rest), step);
    return arith::DivUIOp::create(index.b, index.loc, at, step);
  }
  Value enterQuery(Value local) { return enter(local, firstQuery); }
  Value enterKey(Value local) { return enter(local, firstKey); }

  Value local(const IndexBuilder &b, Value position, Value first) const {
    if (of.dilation != 1)
      position = b.add(b.mul(position, b.constant(of.dilation)), rest);
    return b.sub(position, first);
  }
  Value localKey(const IndexBuilder &b, Value key) const { return local(b, key, firstKey); }
  Value localQuery(const IndexBuilder &b, Value query) const { return local(b, query, firstQuery); }

  /// The first key that a query sees.
  Value firstKeyOf(const IndexBuilder &b, Value query) const {
    Value leader = query, one = b.constant(1), zero = b.constant(0);
    if (of.stride != 1) {
      Value step = b.constant(of.stride);
      Value first = b.mul(arith::DivUIOp::create(b.b, b.loc, query, step), step);
      int64_t behind = of.isCausal ? of.stride - 1 : of.stride / 2;
      leader = b.min(b.add(first, b.constant(behind)), b.sub(length, one));
    }
    if (of.mayLackKeys()) {
      int64_t before = of.kernel - 1 - std::max<int64_t>(of.cut, 0);
      return b.max(b.sub(leader, b.constant(before)), zero);
    }
    Value begin =
        b.min(b.sub(leader, b.constant(of.kernel / 2)), b.sub(length, b.constant(of.kernel)));
    return b.max(begin, zero);
  }

  /// The queries of this rank, `numQueries` of them, among which are all that see a key.
  Span queriesOf(Value key, Value numQueries) const {
    Value zero = index.constant(0), begin, end;
    if (of.mayLackKeys()) {
      int64_t ahead = std::max<int64_t>(of.cut, 0);
      begin = ahead == 0 ? key : index.max(index.sub(key, index.constant(ahead)), zero);
      end = index.min(index.add(key, index.constant(of.kernel - ahead)), length);
    } else {
      // Near the start the first query sees the key too, and near the end the last one.
      int64_t half = of.kernel / 2, behind = of.stride / 2;
      Value from = index.max(index.add(key, index.constant(half + 1 - of.kernel - behind)), zero);
      Value to = index.min(index.add(key, index.constant(half + of.stride - behind)), length);
      begin = select(isBelow(key, index.constant(of.kernel)), zero, from);
      end = select(isBelow(index.add(key, index.constant(of.kernel)), length), to, length);
    }
    Value last = index.add(firstQuery, numQueries);
    if (of.dilation == 1)
      return {index.max(begin, firstQuery), index.min(end, last)};
    Value step = index.constant(of.dilation);
    auto firstBehind = [&](Value position) {
      return index.ceilDiv(index.sub(position, rest), step);
    };
    return {index.max(begin, firstBehind(firstQuery)), index.min(end, firstBehind(last))};
  }

  /// The last key that a query may see, where it may see fewer than a kernel has; else null. A
  /// line of a length that only the run knows may be shorter than the kernel, which is refused
  /// before the run where the program says so (dist.constraints).
  Value lastKeyOf(const IndexBuilder &b, Value query) const {
    if (of.isCut())
      return b.min(b.add(query, b.constant(of.cut)), b.sub(length, b.constant(1)));
    if (of.isCausal)
      return query;
    return isLengthKnown ? Value() : b.sub(length, b.constant(1));
  }
  /// Whether a query sees the key that would be this neighbor of it.
  Value sees(Value slot) const {
    return arith::CmpIOp::create(index.b, index.loc, arith::CmpIPredicate::ult, slot,
                                 index.constant(of.kernel));
  }
  Value isBelow(Value a, Value b) const {
    return arith::CmpIOp::create(index.b, index.loc, arith::CmpIPredicate::slt, a, b);
  }

private:
  Value select(Value condition, Value a, Value b) const {
    return arith::SelectOp::create(index.b, index.loc, condition, a, b);
  }

  IndexBuilder index;
  aten::Neighborhood of;
  Value size, firstQuery, firstKey;
  bool isLengthKnown = false;
  Value rest, length; ///< of the line that was entered
};

/// The numbers of the op's place, or those of the whole, which has the sizes of `rows`.
template <typename Op>
SmallVector<OpFoldResult> placeOf(Op op, typename Op::Adaptor adaptor,
                                  const TensorBuilder::Sizes &rows) {
  if (!op.getStaticPlace().empty())
    return getMixedValues(op.getStaticPlace(), adaptor.getPlace(), op.getContext());
  SmallVector<OpFoldResult> place;
  Builder b(op.getContext());
  for (size_t dim = 0; dim < op.getKernelSize().size(); ++dim) {
    OpFoldResult size = rows[kBatch + dim], zero = b.getIndexAttr(0);
    llvm::append_range(place, ArrayRef<OpFoldResult>{size, zero, zero, size});
  }
  return place;
}

std::vector<Line> linesOf(const IndexBuilder &index, ArrayRef<aten::Neighborhood> neighborhoods,
                          ArrayRef<OpFoldResult> place) {
  std::vector<Line> lines;
  for (auto [dim, one] : llvm::enumerate(neighborhoods))
    lines.emplace_back(index, one,
                       place.slice(dim * aten::kNeighborhoodPlaces, aten::kNeighborhoodPlaces));
  return lines;
}

/// Sums in the compute type of `wide`, as elements of another type.
Value stored(const TensorBuilder &tensor, ArrayRef<OpFoldResult> sizes, Value sums, Type element,
             Type wide) {
  if (storageType(element) == computeType(wide))
    return sums;
  return tensor.map(sizes, storageType(element), sums, [&](OpBuilder &b, ValueRange args) {
    ScalarBuilder s(b, tensor.loc, element);
    return s.store(s.convert(args[0], wide));
  });
}

/// Products over the neighbors of each query, added up over the last dim (qk) or over the neighbors
/// (av). The loops are batch, queries, heads, neighbors and the elements of a row.
template <typename Op, bool isQk> struct ConvertGathered : OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;

  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    TensorBuilder tensor(rewriter, loc);
    Value own = adaptor.getOperands()[0], keys = adaptor.getOperands()[1];
    aten::Neighborhoods neighborhoods = op.getNeighborhoods();
    size_t spatial = neighborhoods.size(), heads = kBatch + spatial, outer = heads + 1;
    size_t row = outer + spatial; // the last loop
    TensorBuilder::Sizes sizes = tensor.sizesOf(own), ofKeys = tensor.sizesOf(keys);
    SmallVector<OpFoldResult> place = placeOf(op, adaptor, ofKeys);

    MLIRContext *context = op.getContext();
    SmallVector<AffineExpr> withRow, withNeighbors;
    SmallVector<utils::IteratorType> iterators;
    TensorBuilder::Sizes result(ArrayRef(sizes).take_front(outer));
    for (size_t loop = 0; loop <= row; ++loop) {
      AffineExpr at = rewriter.getAffineDimExpr(loop);
      bool isNeighbor = loop >= outer && loop < row;
      if (!isNeighbor)
        withRow.push_back(at);
      if (loop != row)
        withNeighbors.push_back(at);
      bool isSummed = isQk ? loop == row : isNeighbor;
      iterators.push_back(isSummed ? utils::IteratorType::reduction
                                   : utils::IteratorType::parallel);
    }
    if (isQk)
      for (const aten::Neighborhood &one : neighborhoods)
        result.push_back(rewriter.getIndexAttr(one.kernel));
    else
      result.push_back(ofKeys.back());
    AffineMap rowMap = AffineMap::get(row + 1, 0, withRow, context),
              neighborMap = AffineMap::get(row + 1, 0, withNeighbors, context);

    Type ofOwn = aten::elementTypeOf(op->getOperand(0)),
         ofKey = aten::elementTypeOf(op->getOperand(1)),
         ofResult = aten::elementTypeOf(op->getResult(0));
    ScalarBuilder s(rewriter, loc, ofResult);
    Value zeros =
        linalg::FillOp::create(rewriter, loc, s.constant(0), tensor.empty(result, s.compute()))
            .getResult(0);
    auto body = [&](OpBuilder &b, Location l, ValueRange args) {
      IndexBuilder index{b, l};
      SmallVector<Value> at = {linalg::IndexOp::create(b, l, 0)};
      Value exists;
      for (auto [dim, line] : llvm::enumerate(linesOf(index, neighborhoods, place))) {
        Value query = line.enterQuery(linalg::IndexOp::create(b, l, kBatch + dim));
        Value key =
            index.add(line.firstKeyOf(index, query), linalg::IndexOp::create(b, l, outer + dim));
        if (Value last = line.lastKeyOf(index, query)) {
          // There are no neighbors behind it: it stands for them, and does not count.
          Value isThere = arith::CmpIOp::create(b, l, arith::CmpIPredicate::sle, key, last);
          exists = exists ? arith::AndIOp::create(b, l, exists, isThere).getResult() : isThere;
          key = index.min(key, last);
        }
        at.push_back(line.localKey(index, key));
      }
      at.push_back(linalg::IndexOp::create(b, l, heads));
      at.push_back(linalg::IndexOp::create(b, l, row));
      ScalarBuilder t(b, l, ofResult);
      Value key = t.as(ofKey).load(tensor::ExtractOp::create(b, l, keys, at));
      Value product = t.mul(t.convert(t.as(ofOwn).load(args[0]), ofOwn), t.convert(key, ofKey));
      if (exists)
        product = t.select(exists, product, t.constant(0));
      Value sum = t.add(args[1], product);
      linalg::YieldOp::create(b, l, sum);
    };
    Value sums = linalg::GenericOp::create(
                     rewriter, loc, zeros.getType(), own, zeros,
                     ArrayRef<AffineMap>{isQk ? rowMap : neighborMap, isQk ? neighborMap : rowMap},
                     iterators, body)
                     .getResult(0);
    rewriter.replaceOp(op, stored(tensor, result, sums, ofResult, ofResult));
    return success();
  }
};

/// Of each key, products over all queries that may see it, those that do not left out. The loops
/// are batch, keys, heads, queries and the elements of a row.
struct ConvertAdjoint : OpConversionPattern<aten::NeighborhoodAdjointOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(aten::NeighborhoodAdjointOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    MLIRContext *context = op.getContext();
    TensorBuilder tensor(rewriter, loc);
    Value weights = adaptor.getWeights(), rows = adaptor.getRows();
    aten::Neighborhoods neighborhoods = op.getNeighborhoods();
    size_t spatial = neighborhoods.size(), heads = kBatch + spatial, row = heads + 1 + spatial;
    TensorBuilder::Sizes sizes = tensor.sizesOf(rows), result = sizes, queries;
    SmallVector<OpFoldResult> place = placeOf(op, adaptor, sizes);
    for (auto [dim, one] : llvm::enumerate(neighborhoods)) {
      ArrayRef<OpFoldResult> own = ArrayRef(place).slice(dim * aten::kNeighborhoodPlaces);
      result[kBatch + dim] = own[static_cast<size_t>(aten::NeighborhoodPlace::NumKeys)];
      std::optional<int64_t> size =
          getConstantIntValue(own[static_cast<size_t>(aten::NeighborhoodPlace::Size)]);
      queries.push_back(rewriter.getIndexAttr(one.mostQueries(size.value_or(kDynamic))));
    }
    SmallVector<AffineExpr> ofResult, ofQueries;
    SmallVector<utils::IteratorType> iterators;
    for (size_t loop = 0; loop <= row; ++loop) {
      bool isQuery = loop > heads && loop < row;
      (isQuery ? ofQueries : ofResult).push_back(rewriter.getAffineDimExpr(loop));
      iterators.push_back(isQuery ? utils::IteratorType::reduction : utils::IteratorType::parallel);
    }
    Type element = aten::elementTypeOf(op.getRows()), wide = aten::elementTypeOf(op.getWeights());
    ScalarBuilder s(rewriter, loc, wide);
    auto zeros = [&](ArrayRef<OpFoldResult> of) {
      return linalg::FillOp::create(rewriter, loc, s.constant(0), tensor.empty(of, s.compute()))
          .getResult(0);
    };
    auto body = [&](OpBuilder &b, Location l, ValueRange args) {
      IndexBuilder index{b, l};
      Value sees;
      SmallVector<Value> query = {linalg::IndexOp::create(b, l, 0)}, neighbor;
      for (auto [dim, line] : llvm::enumerate(linesOf(index, neighborhoods, place))) {
        Value key = line.enterKey(linalg::IndexOp::create(b, l, kBatch + dim));
        Span span = line.queriesOf(key, index.of(sizes[kBatch + dim]));
        Value at = index.add(span.begin, linalg::IndexOp::create(b, l, heads + 1 + dim));
        Value slot = index.sub(key, line.firstKeyOf(index, at));
        for (Value condition : {line.isBelow(at, span.end), line.sees(slot)})
          sees = sees ? arith::AndIOp::create(b, l, sees, condition).getResult() : condition;
        query.push_back(line.localQuery(index, at));
        neighbor.push_back(slot);
      }
      query.push_back(linalg::IndexOp::create(b, l, heads));
      SmallVector<Value> weight(query);
      llvm::append_range(weight, neighbor);
      query.push_back(linalg::IndexOp::create(b, l, row));
      auto product = [&](OpBuilder &inner, Location) {
        ScalarBuilder t(inner, l, wide);
        Value w = t.load(tensor::ExtractOp::create(inner, l, weights, weight));
        Value x = t.as(element).load(tensor::ExtractOp::create(inner, l, rows, query));
        scf::YieldOp::create(inner, l, t.mul(w, t.convert(x, element)));
      };
      auto nothing = [&](OpBuilder &inner, Location) {
        scf::YieldOp::create(inner, l, ScalarBuilder(inner, l, wide).constant(0));
      };
      Value seen = scf::IfOp::create(b, l, sees, product, nothing).getResult(0);
      linalg::YieldOp::create(b, l, ScalarBuilder(b, l, wide).add(args[1], seen));
    };
    // The first operand says how many queries there are.
    Value sums = linalg::GenericOp::create(
                     rewriter, loc, tensor.empty(result, s.compute()).getType(), zeros(queries),
                     zeros(result),
                     ArrayRef<AffineMap>{AffineMap::get(row + 1, 0, ofQueries, context),
                                         AffineMap::get(row + 1, 0, ofResult, context)},
                     iterators, body)
                     .getResult(0);
    rewriter.replaceOp(op, stored(tensor, result, sums, element, wide));
    return success();
  }
};

} // namespace

void shardc::populateNeighborhoodToLinalg(TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ConvertGathered<aten::NeighborhoodQkOp, /*isQk=*/true>,
               ConvertGathered<aten::NeighborhoodAvOp, /*isQk=*/false>, ConvertAdjoint>(
      converter, patterns.getContext());
}
