// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/MaskedAttention.h"

#include "dialects/aten/Aten.h"
#include "dialects/aten/TrainingAttention.h"
#include "dialects/interfaces/TensorView.h"

#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;

namespace shardc::aten {
namespace {

using Match = std::optional<MaskedAttention>;

/// Whether the op moves dims of size 1 only.
bool keepsOrder(Operation *op) {
  std::optional<SmallVector<int64_t>> dims = permutationOf(op);
  if (!dims)
    return false;
  ArrayRef<int64_t> shape = shapeOf(op->getOperand(0));
  llvm::erase_if(*dims, [&](int64_t dim) { return shape[dim] == 1; });
  return llvm::is_sorted(*dims);
}

/// The operand of an op whose result has the same numbers in the same order, in another shape or
/// float type.
Value passedThrough(Operation *op) {
  if (op->hasAttr(kTrainingAttentionAttr))
    return {};
  if (auto copy = dyn_cast<ToCopyOp>(op))
    return isa<FloatType>(elementTypeOf(copy.getSelf())) &&
                   isa<FloatType>(elementTypeOf(copy.getResult()))
               ? copy.getSelf()
               : Value();
  if (isa<CloneOp, AliasOp, ViewOp, UnsqueezeOp, SqueezeOp>(op) || keepsOrder(op))
    return op->getOperand(0);
  return {};
}

/// The number that a float tensor is everywhere, as a constant says it.
std::optional<APFloat> floatEverywhere(Value tensor) {
  Operation *op = tensor.getDefiningOp();
  while (op && isa<CloneOp, AliasOp, ExpandOp, ViewOp, UnsqueezeOp, SqueezeOp>(op)) {
    tensor = op->getOperand(0);
    op = tensor.getDefiningOp();
  }
  DenseElementsAttr elements;
  if (!matchPattern(tensor, m_Constant(&elements)) || !elements.isSplat() ||
      !isa<FloatType>(elements.getElementType()))
    return std::nullopt;
  return elements.getSplatValue<APFloat>();
}

bool isNegativeInfinity(Value tensor) {
  std::optional<APFloat> number = floatEverywhere(tensor);
  return number && number->isInfinity() && number->isNegative();
}
/// -infinity, or the lowest number of the type.
bool hidesKeys(Value tensor) {
  std::optional<APFloat> number = floatEverywhere(tensor);
  return number && number->isNegative() && (number->isInfinity() || number->isLargest());
}

bool isOneNumber(Value tensor) {
  return llvm::all_of(shapeOf(tensor), [](int64_t size) { return size == 1; });
}

bool isProduct(Operation *op) { return isa_and_nonnull<MatmulOp, BmmOp, MmOp>(op); }

/// Follows scores from a softmax to the product that makes them.
class Scores {
public:
  explicit Scores(MaskedAttention &attention) : attention(attention) {}

  /// `isGuarded`: besides the softmax, what hides rows without keys reads the scores.
  bool follow(Value scores, bool isGuarded) {
    masked.push_back(scores);
    int64_t numUses = isGuarded ? 2 : 1;
    while (true) {
      Operation *op = scores.getDefiningOp();
      if (!op || !scores.hasNUses(numUses))
        return false;
      numUses = 1;
      if (isProduct(op)) {
        attention.query = op->getOperand(0);
        attention.key = op->getOperand(1);
        attention.isKeyTransposed = true;
        masked.push_back(scores);
        std::reverse(attention.scales.begin(), attention.scales.end());
        return llvm::all_of(masked, [&](Value at) { return isPairs(at); });
      }
      Value later = scores;
      if (Value before = passedThrough(op)) {
        scores = before;
        continue;
      }
      if (auto fill = dyn_cast<MaskedFillOp>(op))
        scores = take(fill.getSelf(), {fill.getMask(), /*hides=*/true}, fill.getValue());
      else if (auto where = dyn_cast<WhereOp>(op))
        scores = hidesKeys(where.getOther())
                     ? take(where.getSelf(), {where.getCondition(), false}, where.getOther())
                     : take(where.getOther(), {where.getCondition(), true}, where.getSelf());
      else if (isa<MulOp, DivOp>(op))
        scores = takeScale(op);
      else if (auto add = dyn_cast<AddOp>(op); add && add.getAlpha().convertToDouble() == 1)
        scores = takeSum(add);
      else
        return false;
      // What is broadcast to more scores is none of them.
      if (!scores || shapeOf(scores) != shapeOf(later))
        return false;
    }
  }

private:
  /// A mask of bools, and what stands where it hides keys.
  Value take(Value scores, AttentionMask mask, Value hidden) {
    bool isInfinite = isNegativeInfinity(hidden);
    bool isSameType = elementTypeOf(hidden) == elementTypeOf(scores);
    if (!hidesKeys(hidden) || !(isInfinite || isSameType) || !mayHide(isInfinite))
      return {};
    addMask(mask, scores);
    return scores;
  }
  void addMask(AttentionMask mask, Value scores) {
    attention.masks.push_back(mask);
    masked.push_back(scores);
  }

  /// What is multiplied after it was hidden stays hidden if it is -infinity, and the factor is
  /// positive.
  bool mayHide(bool isInfinite) const {
    return isInfinite ? arePositive : attention.scales.empty();
  }

  Value takeScale(Operation *op) {
    unsigned scalar = isOneNumber(op->getOperand(1)) ? 1 : 0;
    Value factor = op->getOperand(scalar);
    if (!isOneNumber(factor) || (isa<DivOp>(op) && scalar == 0))
      return {};
    if (auto div = dyn_cast<DivOp>(op); div && div.getRoundingMode())
      return {};
    std::optional<APFloat> number = floatEverywhere(factor);
    arePositive &= number && number->isFiniteNonZero() && !number->isNegative();
    attention.scales.push_back({op, scalar});
    return op->getOperand(1 - scalar);
  }

  /// The side that leads to a product has the scores, the other one is the mask.
  Value takeSum(AddOp add) {
    for (unsigned side : {0, 1}) {
      Value scores = add->getOperand(side), mask = add->getOperand(1 - side);
      if (!leadsToProduct(scores) || shapeOf(scores) != shapeOf(add.getResult()))
        continue;
      // Numbers that hide by being the lowest would not after a factor, or in another type.
      if (!mayHide(/*isInfinite=*/false) || elementTypeOf(mask) != elementTypeOf(scores))
        return {};
      addMask({mask, false}, scores);
      return scores;
    }
    return {};
  }

  static bool leadsToProduct(Value scores) {
    for (int steps = 0; steps < 16; ++steps) {
      Operation *op = scores.getDefiningOp();
      if (!op || isProduct(op))
        return op != nullptr;
      if (Value before = passedThrough(op))
        scores = before;
      else if (auto where = dyn_cast<WhereOp>(op))
        scores = hidesKeys(where.getOther()) ? where.getSelf() : where.getOther();
      else if (isa<MaskedFillOp, AddOp>(op))
        scores = op->getOperand(0);
      else if (isa<MulOp, DivOp>(op))
        scores = op->getOperand(isOneNumber(op->getOperand(1)) ? 0 : 1);
      else
        return false;
    }
    return false;
  }

  /// Whether these are scores of all queries and all keys, by their last two dims.
  bool isPairs(Value at) const {
    ArrayRef<int64_t> shape = shapeOf(at);
    int64_t size = attention.numPositions();
    return shape.size() >= 2 &&
           llvm::all_of(shape.take_back(2), [=](int64_t n) { return n == size; });
  }

  MaskedAttention &attention;
  SmallVector<Value> masked; ///< scores at the softmax, at each mask, and at the product
  bool arePositive = true;   ///< all factors so far, which come after what is found now
};

Match matchOneOp(Operation *op, Value query, Value key, Value value, Value mask, bool isCausal,
                 double dropout, std::optional<double> scale, bool isGrouped) {
  int64_t width = shapeOf(query).back();
  if (!mask || isCausal || dropout != 0 || (!scale && ShapedType::isDynamic(width)))
    return std::nullopt;
  Type type = elementTypeOf(mask);
  if (!type.isInteger(1) && type != elementTypeOf(query))
    return std::nullopt;
  MaskedAttention attention;
  attention.op = op;
  attention.query = query, attention.key = key, attention.value = value;
  attention.isGrouped = isGrouped;
  attention.masks.push_back({mask, false});
  attention.scale = scale.value_or(1 / std::sqrt(static_cast<double>(width)));
  return attention;
}

template <typename Op> Match matchOneOp(Op op) {
  std::optional<double> scale;
  if (std::optional<APFloat> given = op.getScale())
    scale = given->convertToDouble();
  return matchOneOp(op, op.getQuery(), op.getKey(), op.getValue(), op.getAttnMask(),
                    op.getIsCausal(), op.getDropoutP().convertToDouble(), scale, op.getEnableGqa());
}

/// Where a softmax is of scores some of whose rows may be all -infinity, PyTorch's decomposition of
/// attention puts zeros there. Returns these scores: no row of windows is such a one.
Value guardedScores(WhereOp where) {
  std::optional<APFloat> zero = floatEverywhere(where.getSelf());
  auto none = where.getCondition().getDefiningOp<LogicalNotOp>();
  auto any = none ? none.getSelf().getDefiningOp<AnyOp>() : nullptr;
  auto isSeen = any ? any.getSelf().getDefiningOp<LogicalNotOp>() : nullptr;
  auto isHidden = isSeen ? isSeen.getSelf().getDefiningOp<EqOp>() : nullptr;
  if (!zero || !zero->isZero() || !isHidden || !any.getKeepdim() || !any.getDim() ||
      any.getDim()->size() != 1 || any.getDim()->front() != typeOf(any.getSelf()).getRank() - 1 ||
      !isNegativeInfinity(isHidden.getOther()))
    return {};
  for (Operation *op :
       {none.getOperation(), any.getOperation(), isSeen.getOperation(), isHidden.getOperation()})
    if (!op->hasOneUse())
      return {};
  return isHidden.getSelf();
}

Match matchWrittenOut(Operation *op) {
  if (!isProduct(op))
    return std::nullopt;
  MaskedAttention attention;
  attention.op = op;
  attention.value = op->getOperand(1);
  Value weights = op->getOperand(0), guarded;
  SoftmaxOp softmax;
  while (!softmax) {
    Operation *before = weights.getDefiningOp();
    if (!before || !weights.hasOneUse())
      return std::nullopt;
    softmax = dyn_cast<SoftmaxOp>(before);
    if (auto where = dyn_cast<WhereOp>(before); where && (guarded = guardedScores(where)))
      weights = where.getOther();
    else if (!softmax && !(weights = passedThrough(before)))
      return std::nullopt;
  }
  int64_t rank = typeOf(softmax.getSelf()).getRank();
  if (static_cast<int64_t>(softmax.getDim()) != rank - 1 ||
      (guarded && guarded != softmax.getSelf()) ||
      !Scores(attention).follow(softmax.getSelf(), guarded != nullptr) || attention.masks.empty())
    return std::nullopt;
  return attention;
}

/// Whether the dims in front of the last two are the same, but for the heads of grouped keys.
bool haveSameOuter(const MaskedAttention &attention, Value a, Value b) {
  ArrayRef<int64_t> left = shapeOf(a).drop_back(2), right = shapeOf(b).drop_back(2);
  if (left.size() != right.size())
    return false;
  for (auto [i, x, y] : llvm::enumerate(left, right)) {
    bool isHeads = i + 1 == left.size();
    bool areGroups = attention.isGrouped && isHeads && !ShapedType::isDynamic(x) &&
                     !ShapedType::isDynamic(y) && y > 0 && x % y == 0;
    if (x != y && !areGroups)
      return false;
  }
  return true;
}

} // namespace

int64_t MaskedAttention::numPositions() const {
  ArrayRef<int64_t> shape = shapeOf(query);
  return shape[shape.size() - 2];
}

Match matchMaskedAttention(Operation *op) {
  Match match;
  if (auto attention = dyn_cast<ScaledDotProductAttentionOp>(op))
    match = matchOneOp(attention);
  else if (auto attention = dyn_cast<ScaledDotProductFlashAttentionOp>(op);
           attention && attention.getLogsumexp().use_empty())
    match = matchOneOp(attention);
  else
    match = matchWrittenOut(op);
  if (!match)
    return std::nullopt;
  // As many keys as queries, and the same dims in front. Of these, sizes that only the run knows
  // stay apart.
  ArrayRef<int64_t> query = shapeOf(match->query), key = shapeOf(match->key),
                    value = shapeOf(match->value);
  if (query.size() < 2 || key.size() < 2 || value.size() < 2)
    return std::nullopt;
  int64_t size = match->numPositions(), last = static_cast<int64_t>(key.size()) - 1;
  if (ShapedType::isDynamic(size) || key[last - (match->isKeyTransposed ? 0 : 1)] != size ||
      value[value.size() - 2] != size || !haveSameOuter(*match, match->query, match->key))
    return std::nullopt;
  bool isViewed = query.size() != value.size();
  if (!isViewed && !haveSameOuter(*match, match->query, match->value))
    return std::nullopt;
  // Grouped heads are a dim of their own behind the batch.
  if (match->isGrouped && query.size() < 4)
    return std::nullopt;
  ArrayRef<int64_t> outer = query.drop_back(2);
  if ((isViewed || outer.size() > 2) &&
      (llvm::any_of(outer, ShapedType::isDynamic) || llvm::any_of(value, ShapedType::isDynamic)))
    return std::nullopt;
  // A product may repeat its operands along dims in front, which makes other results than those of
  // one query for each position.
  ArrayRef<int64_t> result = shapeOf(match->op->getResult(0));
  if (!isViewed && result.size() == query.size())
    return result.drop_back(2) == outer ? match : std::nullopt;
  if (llvm::any_of(outer, ShapedType::isDynamic) || llvm::any_of(value, ShapedType::isDynamic) ||
      llvm::any_of(result, ShapedType::isDynamic) ||
      llvm::product_of(outer) != llvm::product_of(value.drop_back(2)) ||
      llvm::product_of(outer) != llvm::product_of(result.drop_back(2)))
    return std::nullopt;
  return match;
}

} // namespace shardc::aten
