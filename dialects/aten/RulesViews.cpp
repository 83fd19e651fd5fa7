// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"
#include "dialects/aten/DimOrigins.h"
#include "dialects/aten/Rules.h"
#include "dialects/sharding/HaloCost.h"

#include <numeric>

using namespace mlir;

namespace shardc::aten {

namespace {
/// Pairs up dims of operand 0 and of result 0, all parallel.
class DimPairs {
public:
  explicit DimPairs(Operation *op) : builder(ruleBuilder(op)), self(typeOf(op->getOperand(0))) {}
  void pair(int64_t dim, int64_t resultDim) {
    DimFactors factors;
    if (self.getDimSize(dim) != 1)
      factors.push_back(builder.factor(self.getDimSize(dim)));
    builder.operandDim(0, dim, factors).resultDim(0, resultDim, factors);
  }
  int64_t getRank() const { return self.getRank(); }
  RuleBuilder builder;

private:
  RankedTensorType self;
};
} // namespace

ShardingRule viewRule(Operation *op) {
  auto view = cast<ViewOp>(op);
  DimSizes sizes;
  std::vector<RuleBuilder::Shape> operands(op->getNumOperands()), results(1);
  for (int64_t dim = 0; dim < typeOf(view.getSelf()).getRank(); ++dim)
    operands[0].push_back(sizes.of(view.getSelf(), dim));
  auto product = [](const RuleBuilder::Shape &shape) {
    DimSize total;
    for (const DimSize &size : shape) {
      // Wraps around where sizes are absurd: equal products still agree.
      total.coefficient = static_cast<int64_t>(static_cast<uint64_t>(total.coefficient) *
                                               static_cast<uint64_t>(size.coefficient));
      llvm::append_range(total.symbols, size.symbols);
    }
    llvm::sort(total.symbols);
    return total;
  };
  for (OpFoldResult size : view.getMixedSize()) {
    auto index = dyn_cast<Value>(size);
    results[0].push_back(index ? sizes.ofIndex(index) : DimSize(*getConstantIntValue(size)));
  }
  // Where a size is of unknown origin, the builder may still find the only one that fits.
  if (!(product(operands[0]) == product(results[0])))
    return ruleBuilder(op).view().build();
  return RuleBuilder(operands, results).view().build();
}

ShardingRule expandRule(Operation *op) { return ruleBuilder(op).expand().build(); }

ShardingRule permuteRule(Operation *op) {
  ArrayRef<int64_t> dims = cast<PermuteOp>(op).getDims();
  return ruleBuilder(op).permute({dims.begin(), dims.end()}).build();
}

ShardingRule transposeRule(Operation *op) {
  auto transpose = cast<TransposeOp>(op);
  std::vector<int64_t> dims(typeOf(transpose.getSelf()).getRank());
  std::iota(dims.begin(), dims.end(), 0);
  if (!dims.empty())
    std::swap(dims[transpose.getDim0()], dims[transpose.getDim1()]);
  return ruleBuilder(op).permute(std::move(dims)).build();
}

ShardingRule unsqueezeRule(Operation *op) {
  int64_t added = cast<UnsqueezeOp>(op).getDim();
  DimPairs pairs(op);
  for (int64_t i = 0; i < pairs.getRank(); ++i)
    pairs.pair(i, i < added ? i : i + 1);
  pairs.builder.resultDim(0, added, {});
  return pairs.builder.linear(0).movesDataOnly().build();
}

ShardingRule squeezeRule(Operation *op) {
  DimPairs pairs(op);
  int64_t kept = 0;
  for (int64_t i = 0; i < pairs.getRank(); ++i)
    if (llvm::is_contained(cast<SqueezeOp>(op).getDim(), i))
      pairs.builder.operandDim(0, i, {});
    else
      pairs.pair(i, kept++);
  return pairs.builder.linear(0).movesDataOnly().build();
}

namespace {
/// A dim of an operand whose element i is element i + `offset` of a dim of the result; those that
/// are outside of it are in no result. Of a split it is the other way about.
struct Piece {
  unsigned tensor;
  int64_t size;
  int64_t offset;
};

/// How much the ranks of an axis fetch depends on their number: the most that one of two lacks of
/// its chunks, where the pieces are operands, or results, of a tensor of `size`.
int64_t lackedByOneOfTwo(int64_t size, ArrayRef<Piece> pieces, bool areResults) {
  int64_t most = 0;
  for (int64_t rank : {0, 1}) {
    Run all = chunkOfTwo(size, rank);
    int64_t lacks = 0;
    for (const Piece &piece : pieces) {
      Run whole{all.begin - piece.offset, all.end - piece.offset},
          own = chunkOfTwo(piece.size, rank);
      Run inside{std::clamp<int64_t>(whole.begin, 0, piece.size),
                 std::clamp<int64_t>(whole.end, 0, piece.size)};
      lacks += areResults ? lackedOf(own, whole) : lackedOf(inside, own);
    }
    most = std::max(most, lacks);
  }
  return most;
}

/// Says that a dim of `size` of one tensor, the result or the only operand, is made of dims of
/// other sizes, or is cut into them. All are chunked over the ranks, which fetch what they lack of
/// their part of the results.
void neighbouringDim(RuleBuilder &builder, int64_t dim, int64_t size, ArrayRef<Piece> pieces,
                     bool areResults = false) {
  int64_t largest = size;
  for (const Piece &piece : pieces)
    largest = std::max(largest, piece.size);
  unsigned factor = builder.factor(largest, FactorKind::Neighbouring);
  for (const Piece &piece : pieces)
    areResults ? builder.resultDim(piece.tensor, dim, {factor})
               : builder.operandDim(piece.tensor, dim, {factor});
  areResults ? builder.operandDim(0, dim, {factor}) : builder.resultDim(0, dim, {factor});
  builder.at(factor).inOnePiece = true;
  // Where nothing is cut off at one end and added at the other, one is a part of the other.
  int64_t begin = pieces.front().offset, end = begin + pieces.front().size;
  if ((begin >= 0 && end <= size) != (begin <= 0 && end >= size))
    builder.at(factor).exchange = std::abs(begin) + 1;
  // It counts for each of the factor's elements, of which the first result may have few.
  int64_t most = lackedByOneOfTwo(size, pieces, areResults);
  builder.at(factor).haloAfter = ceilDiv(most * largest, areResults ? pieces.front().size : size);
}

/// The same of sizes that are not all known. A rank lacks `shift` elements of its part.
void symbolicDim(RuleBuilder &builder, int64_t dim, ArrayRef<unsigned> operands, int64_t shift,
                 ArrayRef<unsigned> results = {0}) {
  unsigned factor = builder.factor(ShapedType::kDynamic, FactorKind::Neighbouring);
  for (unsigned operand : operands)
    builder.operandDim(operand, dim, {factor});
  for (unsigned result : results)
    builder.resultDim(result, dim, {factor});
  builder.at(factor).inOnePiece = true;
  builder.at(factor).haloAfter = static_cast<double>(shift);
}

/// The same of a result whose element i is element start + step * i of the operand.
void stridedDim(RuleBuilder &builder, int64_t dim, int64_t size, int64_t start, int64_t step,
                int64_t count) {
  unsigned factor = builder.factor(size, FactorKind::Neighbouring);
  builder.operandDim(0, dim, {factor}).resultDim(0, dim, {factor});
  builder.at(factor).inOnePiece = true;
  // Of two ranks the first has those of its half of the operand, and wants a half of them all.
  int64_t has =
      std::clamp<int64_t>(ceilDiv(std::max<int64_t>(ceilDiv(size, 2) - start, 0), step), 0, count);
  int64_t lacks = std::abs(has - ceilDiv(count, 2));
  builder.at(factor).haloAfter = ceilDiv(lacks * size, count);
}
} // namespace

/// A slice that is one of few equal blocks of a dim, as those of a fused weight are, is sharded as
/// a block is: each rank has a part of every block. One of many, such as what a circular pad or a
/// roll takes from an end, is a part like any other. (The rule of an op must not depend on other
/// ops.)
static bool isOneOfFewBlocks(int64_t start, int64_t block, int64_t size) {
  constexpr int64_t kMostBlocks = 6;
  return block > 1 && start % block == 0 && size % block == 0 && size / block <= kMostBlocks;
}

ShardingRule sliceRule(Operation *op) {
  auto slice = cast<SliceOp>(op);
  int64_t dim = slice.getDim(), start = slice.getStaticStart();
  ArrayRef<int64_t> self = shapeOf(slice.getSelf()), result = shapeOf(slice.getResult());
  if (start < 0 && !ShapedType::isDynamic(start) && !ShapedType::isDynamic(self[dim]))
    start = std::max<int64_t>(start + self[dim], 0);
  bool isWhole = self[dim] == result[dim] && !ShapedType::isDynamic(self[dim]);
  bool isKnown = !ShapedType::isDynamic(start) && !ShapedType::isDynamic(self[dim]) &&
                 !slice.getStart() && !slice.getEnd() && result[dim] > 0;
  RuleBuilder builder = ruleBuilder(op);
  if (slice.getStep() != 1 && isKnown && result[dim] > 1) {
    builder.slice(dim, -1);
    stridedDim(builder, dim, self[dim], start, slice.getStep(), result[dim]);
    return builder.build();
  }
  if (ShapedType::isDynamic(self[dim])) {
    builder.slice(dim, -1);
    symbolicDim(builder, dim, {0}, slice.getStart() ? kTypicalSize / 4 : std::abs(start) + 1);
    return builder.build();
  }
  // Blocks can be told apart only where all is known.
  if (slice.getStep() != 1 || ShapedType::isDynamic(start) || ShapedType::isDynamic(result[dim]))
    start = -1;
  // Of one element there is nothing to share out.
  bool isBlock = isWhole || isOneOfFewBlocks(start, result[dim], self[dim]);
  bool isPart = start >= 0 && !ShapedType::isDynamic(self[dim]) && result[dim] > 0 && !isBlock;
  builder.slice(dim, isWhole ? 0 : isPart ? -1 : start);
  if (isPart)
    neighbouringDim(builder, dim, result[dim], Piece{0, self[dim], -start});
  return builder.build();
}

/// Of a split of a dim of typical size, of which the parts of unknown size have equal shares: the
/// most elements that one of two ranks lacks, for as many elements of the first part as there are.
static int64_t shiftOfSplit(SplitWithSizesOp split) {
  int64_t rest = kTypicalSize, numUnknown = 0, offset = 0;
  for (int64_t size : split.getStaticSplitSizes())
    ShapedType::isDynamic(size) ? ++numUnknown : rest -= size;
  SmallVector<Piece> pieces;
  for (auto [number, size] : llvm::enumerate(split.getStaticSplitSizes())) {
    int64_t own = ShapedType::isDynamic(size) ? std::max<int64_t>(rest / numUnknown, 1) : size;
    pieces.push_back({static_cast<unsigned>(number), own, offset});
    offset += own;
  }
  int64_t most = std::max<int64_t>(lackedByOneOfTwo(offset, pieces, /*areResults=*/true), 1);
  int64_t first = split.getStaticSplitSizes().front();
  return ShapedType::isDynamic(first) ? most
                                      : ceilDiv(most * kTypicalSize, std::max<int64_t>(first, 1));
}

ShardingRule splitRule(Operation *op) {
  auto split = cast<SplitWithSizesOp>(op);
  int64_t dim = split.getDim(), size = shapeOf(split.getSelf())[dim], offset = 0;
  RuleBuilder builder = ruleBuilder(op);
  builder.split(dim);
  SmallVector<Piece> pieces;
  bool equal = true, isStatic = size > 0;
  for (auto [number, part] : llvm::enumerate(op->getResults())) {
    int64_t own = shapeOf(part)[dim];
    isStatic &= !ShapedType::isDynamic(own);
    if (!isStatic)
      break;
    if (own > 0)
      pieces.push_back({static_cast<unsigned>(number), own, offset});
    equal &= !pieces.empty() && own == pieces.front().size;
    offset += own;
  }
  if (isStatic && !equal)
    neighbouringDim(builder, dim, size, pieces, /*areResults=*/true);
  if (ShapedType::isDynamic(size) || llvm::any_of(split.getStaticSplitSizes(), [](int64_t part) {
        return ShapedType::isDynamic(part);
      })) {
    SmallVector<unsigned> parts = llvm::to_vector(llvm::seq<unsigned>(0, op->getNumResults()));
    symbolicDim(builder, dim, {0}, shiftOfSplit(split), parts);
  }
  return builder.build();
}

/// The most elements that one of two ranks lacks of a join whose operands of symbolic size have a
/// typical one.
static int64_t shiftOfJoin(CatOp cat, int64_t dim, ArrayRef<unsigned> joined) {
  int64_t total = 0;
  SmallVector<Piece> pieces;
  for (unsigned number : joined) {
    int64_t own = shapeOf(cat.getTensors()[number])[dim];
    own = ShapedType::isDynamic(own) ? kTypicalSize : own;
    pieces.push_back({number, own, total});
    total += own;
  }
  return std::max<int64_t>(lackedByOneOfTwo(total, pieces, /*areResults=*/false), 1);
}

ShardingRule catRule(Operation *op) {
  auto cat = cast<CatOp>(op);
  int64_t dim = cat.getDim(), rank = typeOf(op->getResult(0)).getRank();
  RuleBuilder builder = ruleBuilder(op);
  builder.concat(dim);
  int64_t size = shapeOf(op->getResult(0))[dim], offset = 0;
  bool equal = true, isStatic = size > 0;
  std::optional<int64_t> first;
  SmallVector<Piece> pieces;
  SmallVector<unsigned> joined;
  for (auto [number, tensor] : llvm::enumerate(cat.getTensors())) {
    if (typeOf(tensor).getRank() != rank) // a legacy empty one
      continue;
    joined.push_back(static_cast<unsigned>(number));
    int64_t own = shapeOf(tensor)[dim];
    isStatic &= !ShapedType::isDynamic(own);
    if (!isStatic)
      continue;
    if (own > 0)
      pieces.push_back({static_cast<unsigned>(number), own, offset});
    if (!first)
      first = own;
    equal &= own == *first;
    offset += own;
  }
  if (isStatic && !equal)
    neighbouringDim(builder, dim, size, pieces);
  if (ShapedType::isDynamic(size))
    symbolicDim(builder, dim, joined, shiftOfJoin(cat, dim, joined));
  return builder.build();
}

ShardingRule stackRule(Operation *op) {
  int64_t added = cast<StackOp>(op).getDim();
  RuleBuilder builder = ruleBuilder(op);
  std::vector<unsigned> all;
  for (auto [i, size] : llvm::enumerate(shapeOf(op->getResult(0)))) {
    int64_t dim = static_cast<int64_t>(i);
    if (dim == added)
      continue;
    DimFactors factors;
    if (size != 1)
      factors.push_back(builder.factor(size));
    builder.resultDim(0, dim, factors);
    for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
      builder.operandDim(operand, dim < added ? dim : dim - 1, factors);
  }
  for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
    all.push_back(operand);
  return builder.linearJointly(all).movesDataOnly().build();
}

ShardingRule padRule(Operation *op) {
  auto pad = cast<ConstantPadNdOp>(op);
  DimPairs pairs(op);
  for (int64_t i = 0; i < pairs.getRank(); ++i) {
    size_t entry = 2 * (pairs.getRank() - 1 - i);
    if (entry >= pad.getPad().size() ||
        (pad.getPad()[entry] == 0 && pad.getPad()[entry + 1] == 0)) {
      pairs.pair(i, i);
      continue;
    }
    int64_t size = shapeOf(pad.getSelf())[i], padded = shapeOf(pad.getResult())[i];
    int64_t kept = size + std::min<int64_t>(pad.getPad()[entry], 0) +
                   std::min<int64_t>(pad.getPad()[entry + 1], 0);
    if (ShapedType::isDynamic(size)) {
      symbolicDim(pairs.builder, i, {0}, std::abs(pad.getPad()[entry]) + 1);
      continue;
    }
    if (kept < 1)
      continue;
    neighbouringDim(pairs.builder, i, padded, Piece{0, size, pad.getPad()[entry]});
  }
  if (pad.getValue().isZero())
    pairs.builder.linear(0);
  return pairs.builder.build();
}

ShardingRule flipRule(Operation *op) {
  auto flip = cast<FlipOp>(op);
  DimPairs pairs(op);
  for (int64_t i = 0; i < pairs.getRank(); ++i) {
    int64_t size = shapeOf(flip.getSelf())[i];
    if (!llvm::is_contained(flip.getDims(), i) || size <= 1) {
      if (ShapedType::isDynamic(size) && llvm::is_contained(flip.getDims(), i))
        symbolicDim(pairs.builder, i, {0}, kTypicalSize / 4);
      else
        pairs.pair(i, i);
      continue;
    }
    unsigned factor = pairs.builder.factor(size, FactorKind::Neighbouring);
    pairs.builder.operandDim(0, i, {factor}).resultDim(0, i, {factor});
    pairs.builder.at(factor).inOnePiece = true;
    // Each rank's part goes to another: what an all-reduce of a quarter moves among two.
    pairs.builder.at(factor).haloAfter = ceilDiv(size, 4);
  }
  return pairs.builder.linear(0).build();
}

ShardingRule creationRule(Operation *op) { return ruleBuilder(op).create().build(); }

ShardingRule sizeRule(Operation *op) {
  // A size is known wherever a shard is: nothing need be gathered for it.
  RuleBuilder builder = ruleBuilder(op);
  for (auto [i, size] : llvm::enumerate(shapeOf(op->getOperand(0))))
    builder.operandDim(0, static_cast<int64_t>(i),
                       size == 1 ? DimFactors{} : DimFactors{builder.factor(size)});
  return builder.build();
}

} // namespace shardc::aten
