// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that read elements at computed positions. Each checks its indices before the kernel reads any
// of them: all of them, as PyTorch does, also where the result has no elements (aten.index apart).

#include "dialects/aten/Aten.h"
#include "dialects/aten/LookupSizes.h"
#include "dialects/exec/Exec.h"
#include "lowering/linalg/Patterns.h"
#include "lowering/linalg/ScalarBuilder.h"
#include "lowering/linalg/TensorBuilder.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace shardc;

namespace {

/// The size of the dim that index `number` looks up, for messages: that of the whole table.
int64_t tableSize(Operation *op, Value table, int64_t dim, unsigned number) {
  auto whole = op->getAttrOfType<DenseI64ArrayAttr>(aten::kLookupSizesAttr);
  if (whole && number < whole.size() && !ShapedType::isDynamic(whole[number]))
    return whole[number];
  return cast<RankedTensorType>(table.getType()).getDimSize(dim);
}

/// Something that holds or does not, as is known now (no value: it does not; a null one: it does)
/// or when the kernel runs.
using Condition = std::optional<Value>;

Condition both(OpBuilder &b, Location loc, Condition one, Condition other) {
  if (!one || !other)
    return std::nullopt;
  if (!*one || !*other)
    return *one ? one : other;
  return arith::AndIOp::create(b, loc, *one, *other).getResult();
}

Condition either(OpBuilder &b, Location loc, Condition one, Condition other) {
  if (!one || !other)
    return one ? one : other;
  if (!*one || !*other)
    return Value();
  return arith::OrIOp::create(b, loc, *one, *other).getResult();
}

Condition isZero(OpBuilder &b, Location loc, OpFoldResult size, bool negated = false) {
  if (std::optional<int64_t> known = getConstantIntValue(size))
    return (*known == 0) != negated ? Condition(Value()) : std::nullopt;
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  auto predicate = negated ? arith::CmpIPredicate::ne : arith::CmpIPredicate::eq;
  return arith::CmpIOp::create(b, loc, predicate, cast<Value>(size), zero).getResult();
}

/// Whether none of the sizes is 0.
Condition haveElements(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes) {
  Condition result = Value();
  for (OpFoldResult size : sizes)
    result = both(b, loc, result, isZero(b, loc, size, /*negated=*/true));
  return result;
}

/// Every index must lie in [0, size), or [-size, size) where negative ones count from the end.
/// `number`: which of the op's indices these are. `when`: whether they are looked at; null: always.
/// (The largest integer of their type is refused in any case: ranges end before their last number.)
void checkRange(ConversionPatternRewriter &rewriter, Operation *op, Value indices, Value table,
                int64_t dim, bool fromEnd, unsigned number = 0, Value when = {}) {
  Location loc = op->getLoc();
  Value size = getValueOrCreateConstantIndexOp(rewriter, loc,
                                               tensor::getMixedSize(rewriter, loc, table, dim));
  Value low = arith::ConstantIndexOp::create(rewriter, loc, 0);
  if (fromEnd)
    low = arith::SubIOp::create(rewriter, loc, low, size);
  std::string message = ("index out of range in " + op->getName().getStringRef() + " (dim " +
                         Twine(dim) + " of the table")
                            .str();
  int64_t known = tableSize(op, table, dim, number);
  if (!ShapedType::isDynamic(known))
    message += ", of size " + std::to_string(known);
  message += ")";
  Value high = size;
  if (when) {
    // No index is out of the range of all integers of its type.
    unsigned bits = cast<RankedTensorType>(indices.getType()).getElementTypeBitWidth();
    auto limit = [&](int64_t value) {
      return arith::ConstantIndexOp::create(rewriter, loc, value).getResult();
    };
    low = arith::SelectOp::create(rewriter, loc, when, low, limit(llvm::minIntN(bits)));
    high = arith::SelectOp::create(rewriter, loc, when, high, limit(llvm::maxIntN(bits)));
  }
  exec::CheckRangeOp::create(rewriter, loc, indices, low, high, message);
}

Value toIndex(OpBuilder &b, Location loc, Value stored) {
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), stored);
}

/// index < 0 ? index + size : index
Value fromEnd(OpBuilder &b, Location loc, Value index, Value size) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value negative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, index, zero);
  Value wrapped = arith::AddIOp::create(b, loc, index, size);
  return arith::SelectOp::create(b, loc, negative, wrapped, index);
}

/// The element of `source` at the current position, but at `index` (as stored) along `dim`.
Value elementAlong(OpBuilder &b, Location loc, Value source, int64_t dim, Value index) {
  SmallVector<Value> at;
  for (int64_t i = 0, rank = cast<RankedTensorType>(source.getType()).getRank(); i < rank; ++i)
    at.push_back(i == dim ? toIndex(b, loc, index) : currentIndex(b, loc, i));
  return tensor::ExtractOp::create(b, loc, source, at);
}

struct ConvertEmbedding : OpConversionPattern<aten::EmbeddingOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(aten::EmbeddingOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    TensorBuilder tensor(rewriter, loc);
    Value weight = adaptor.getWeight(), indices = adaptor.getIndices();
    checkRange(rewriter, op, indices, weight, 0, /*fromEnd=*/false);
    auto domain = tensor.sizesOf(indices);
    unsigned last = domain.size();
    domain.push_back(tensor::getMixedSize(rewriter, loc, weight, 1));
    AffineMap map = AffineMap::getMultiDimIdentityMap(last + 1, op.getContext()).dropResult(last);
    Value result = tensor.map(domain, cast<RankedTensorType>(weight.getType()).getElementType(),
                              indices, map, [&](OpBuilder &b, ValueRange args) -> Value {
                                Value row = toIndex(b, loc, args[0]);
                                return tensor::ExtractOp::create(
                                    b, loc, weight, ValueRange{row, currentIndex(b, loc, last)});
                              });
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct ConvertGather : OpConversionPattern<aten::GatherOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(aten::GatherOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    TensorBuilder tensor(rewriter, loc);
    Value source = adaptor.getSelf(), index = adaptor.getIndex();
    auto type = cast<RankedTensorType>(source.getType());
    if (type.getRank() == 0)
      return rewriter.notifyMatchFailure(op, "gather from a 0-dim tensor");
    checkRange(rewriter, op, index, source, op.getDim(), /*fromEnd=*/false);
    Value result = tensor.map(tensor.sizesOf(index), type.getElementType(), index,
                              rewriter.getMultiDimIdentityMap(type.getRank()),
                              [&](OpBuilder &b, ValueRange args) {
                                return elementAlong(b, loc, source, op.getDim(), args[0]);
                              });
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct ConvertIndexSelect : OpConversionPattern<aten::IndexSelectOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(aten::IndexSelectOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    TensorBuilder tensor(rewriter, loc);
    Value source = adaptor.getSelf(), index = adaptor.getIndex();
    auto type = cast<RankedTensorType>(source.getType());
    if (type.getRank() == 0)
      return rewriter.notifyMatchFailure(op, "index_select from a 0-dim tensor");
    int64_t dim = op.getDim();
    checkRange(rewriter, op, index, source, dim, /*fromEnd=*/false);
    auto domain = tensor.sizesOf(source);
    // A 0-dim index selects one slice.
    bool scalar = cast<RankedTensorType>(index.getType()).getRank() == 0;
    domain[dim] = scalar ? OpFoldResult(rewriter.getIndexAttr(1))
                         : tensor::getMixedSize(rewriter, loc, index, 0);
    SmallVector<AffineExpr> exprs;
    if (!scalar)
      exprs.push_back(rewriter.getAffineDimExpr(dim));
    AffineMap map = AffineMap::get(type.getRank(), 0, exprs, op.getContext());
    Value result =
        tensor.map(domain, type.getElementType(), index, map, [&](OpBuilder &b, ValueRange args) {
          return elementAlong(b, loc, source, dim, args[0]);
        });
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct ConvertIndex : OpConversionPattern<aten::IndexOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(aten::IndexOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    TensorBuilder tensor(rewriter, loc);
    Value source = adaptor.getSelf();
    auto sourceType = cast<RankedTensorType>(source.getType());
    auto resultType = cast<RankedTensorType>(op.getResult().getType());
    ArrayRef<int64_t> at = op.getIndicesAt();
    int64_t indexRank = 0;
    SmallVector<Value> sizes;
    for (auto [index, dim] : llvm::zip_equal(adaptor.getIndices(), at)) {
      indexRank = std::max(indexRank, cast<RankedTensorType>(index.getType()).getRank());
      sizes.push_back(getValueOrCreateConstantIndexOp(
          rewriter, loc, tensor::getMixedSize(rewriter, loc, source, dim)));
    }
    // The broadcast dims of the indices stand where the indexed dims were if these are adjacent.
    bool adjacent = true;
    for (size_t i = 1; i < at.size(); ++i)
      adjacent &= at[i] == at[i - 1] + 1;
    int64_t first = adjacent && !at.empty() ? at.front() : 0;
    // Result dim of each dim of the source that is kept.
    SmallVector<int64_t> kept(sourceType.getRank(), -1);
    int64_t next = 0;
    for (int64_t dim = 0; dim < sourceType.getRank(); ++dim) {
      if (llvm::is_contained(at, dim))
        continue;
      if (next == first)
        next += indexRank;
      kept[dim] = next++;
    }
    TensorBuilder::Sizes domain;
    for (auto [position, size] : llvm::enumerate(resultType.getShape())) {
      if (!ShapedType::isDynamic(size)) {
        domain.push_back(rewriter.getIndexAttr(size));
        continue;
      }
      domain.push_back(dynamicSize(rewriter, adaptor, kept, position, first, indexRank));
    }
    checkIndices(rewriter, op, adaptor, domain, first, indexRank);
    SmallVector<AffineMap> maps;
    for (Value index : adaptor.getIndices()) {
      auto type = cast<RankedTensorType>(index.getType());
      SmallVector<AffineExpr> exprs;
      for (auto [position, size] : llvm::enumerate(type.getShape())) {
        int64_t dim = first + indexRank - type.getRank() + position;
        bool repeated = size == 1 && getConstantIntValue(domain[dim]) != 1;
        exprs.push_back(repeated ? rewriter.getAffineConstantExpr(0)
                                 : rewriter.getAffineDimExpr(dim));
      }
      maps.push_back(AffineMap::get(domain.size(), 0, exprs, op.getContext()));
    }
    Value result = tensor.map(domain, sourceType.getElementType(), adaptor.getIndices(), maps,
                              [&](OpBuilder &b, ValueRange args) -> Value {
                                SmallVector<Value> position(sourceType.getRank());
                                for (auto [dim, value, size] : llvm::zip_equal(at, args, sizes))
                                  position[dim] = fromEnd(b, loc, toIndex(b, loc, value), size);
                                for (auto [dim, from] : llvm::enumerate(kept))
                                  if (from >= 0)
                                    position[dim] = currentIndex(b, loc, from);
                                return tensor::ExtractOp::create(b, loc, source, position);
                              });
    rewriter.replaceOp(op, result);
    return success();
  }

  /// As PyTorch: where the result has no elements nothing is looked at, but a dim without elements
  /// is an error for indices that have some.
  static void checkIndices(ConversionPatternRewriter &rewriter, aten::IndexOp op, OpAdaptor adaptor,
                           ArrayRef<OpFoldResult> domain, int64_t first, int64_t indexRank) {
    Location loc = op.getLoc();
    ArrayRef<OpFoldResult> indexed = domain.slice(first, indexRank);
    SmallVector<OpFoldResult> others(domain.take_front(first));
    llvm::append_range(others, domain.drop_front(first + indexRank));
    Condition reads = haveElements(rewriter, loc, others);
    Condition isLookup = haveElements(rewriter, loc, indexed);
    for (auto [number, index, dim] : llvm::enumerate(adaptor.getIndices(), op.getIndicesAt())) {
      OpFoldResult size = tensor::getMixedSize(rewriter, loc, adaptor.getSelf(), dim);
      Condition when =
          both(rewriter, loc, isLookup, either(rewriter, loc, reads, isZero(rewriter, loc, size)));
      if (when)
        checkRange(rewriter, op, index, adaptor.getSelf(), dim, /*fromEnd=*/true, number, *when);
    }
  }

  static OpFoldResult dynamicSize(ConversionPatternRewriter &rewriter, OpAdaptor adaptor,
                                  ArrayRef<int64_t> kept, int64_t position, int64_t first,
                                  int64_t indexRank) {
    Location loc = adaptor.getSelf().getLoc();
    for (auto [dim, from] : llvm::enumerate(kept))
      if (from == position)
        return tensor::getMixedSize(rewriter, loc, adaptor.getSelf(), dim);
    for (Value index : adaptor.getIndices()) {
      auto type = cast<RankedTensorType>(index.getType());
      int64_t at = position - first - (indexRank - type.getRank());
      if (at >= 0 && at < type.getRank() && type.getDimSize(at) != 1)
        return tensor::getMixedSize(rewriter, loc, index, at);
    }
    return rewriter.getIndexAttr(1);
  }
};

} // namespace

void shardc::populateIndexingToLinalg(TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ConvertEmbedding, ConvertGather, ConvertIndexSelect, ConvertIndex>(
      converter, patterns.getContext());
}
