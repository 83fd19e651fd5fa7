// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What makes a collective legal. Extents are checked as far as types and lists say them: a local
// extent must be one that some position of the group has (L3), and extents add up to the whole
// (R4).

#include "dialects/dist/Dist.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SmallBitVector.h"

#include <numeric>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

namespace {
/// Verifies one collective; each check emits its own error and returns failure.
class CollectiveVerifier {
public:
  explicit CollectiveVerifier(CollectiveOpInterface op)
      : op(op), groupSize(op.getGroup().getGroupSize()) {}

  LogicalResult verifyResults();
  LogicalResult verifyReduction();
  /// One dim per tensor in `dims`, one list per tensor in `extents`. An optional dim may be -1.
  LogicalResult verifyLists(StringRef name, ArrayRef<int64_t> dims,
                            std::optional<ArrayAttr> extents, bool optional = false);
  LogicalResult verifyTypes(unsigned tensor);
  LogicalResult verifySizes();

private:
  InFlightDiagnostic error(unsigned tensor) { return op->emitOpError("tensor ") << tensor << ": "; }
  /// `full` is the extent along `dim` over the whole group, `local` the one at some position of it.
  LogicalResult verifySplit(unsigned tensor, int64_t dim, int64_t full, int64_t local,
                            ArrayRef<int64_t> extents);
  LogicalResult verifySent(unsigned tensor, int64_t dim, int64_t full, ArrayRef<int64_t> extents);

  CollectiveOpInterface op;
  int64_t groupSize;
};
} // namespace

LogicalResult CollectiveVerifier::verifyResults() {
  size_t tensors = op.getTensors().size();
  if (op->getNumResults() != tensors)
    return op->emitOpError("delivers one result for each tensor: expected ")
           << tensors << " results, got " << op->getNumResults();
  bool async = op.isAsync();
  for (auto [i, result] : llvm::enumerate(op->getResultTypes())) {
    if (isa<FutureType>(result) != async)
      return op->emitOpError("has tensors and futures among its results, expected all tensors "
                             "(synchronous) or all futures (asynchronous)");
    RankedTensorType operand = op.getOperandType(i), delivered = getDeliveredType(result);
    if (operand.getElementType() != delivered.getElementType())
      return error(i) << "element type changes from " << operand.getElementType() << " to "
                      << delivered.getElementType();
    if (operand.getRank() != delivered.getRank())
      return error(i) << "rank changes from " << operand.getRank() << " to " << delivered.getRank();
    if (operand.getEncoding() || delivered.getEncoding())
      return error(i) << "a collective works on local tensors, which have no layout";
  }
  return success();
}

LogicalResult CollectiveVerifier::verifyReduction() {
  std::optional<shardc::Reduction> reduction = op.getReductionOrNone();
  if (!reduction)
    return success();
  for (unsigned i = 0; i < op.getTensors().size(); ++i) {
    Type element = op.getOperandType(i).getElementType();
    bool ordered = *reduction == shardc::Reduction::Min || *reduction == shardc::Reduction::Max;
    if (*reduction == shardc::Reduction::Avg && element.isInteger(1))
      return error(i) << "avg of booleans is not defined";
    if (ordered && isa<ComplexType>(element))
      return error(i) << reductionName(*reduction) << " needs an ordered element type, got "
                      << element;
  }
  return success();
}

LogicalResult CollectiveVerifier::verifyLists(StringRef name, ArrayRef<int64_t> dims,
                                              std::optional<ArrayAttr> extents, bool optional) {
  size_t tensors = op.getTensors().size();
  if (dims.size() != tensors)
    return op->emitOpError("needs one ")
           << name << " for each of " << tensors << " tensors, got " << dims.size();
  for (auto [i, dim] : llvm::enumerate(dims))
    if (dim < (optional ? -1 : 0) || dim >= op.getOperandType(i).getRank())
      return error(i) << name << " " << dim << " is out of range for " << op.getOperandType(i);
  if (!extents)
    return success();
  if (extents->size() != tensors)
    return op->emitOpError("needs one list of extents for each of ")
           << tensors << " tensors (an empty one for chunks), got " << extents->size();
  for (auto [i, attribute] : llvm::enumerate(*extents)) {
    auto list = dyn_cast<DenseI64ArrayAttr>(attribute);
    if (!list)
      return error(i) << "extents must be a list of integers, got " << attribute;
    if (!list.empty() && list.size() != groupSize)
      return error(i) << "expected one extent for each of " << groupSize
                      << " positions of the group, got " << list.size();
    for (int64_t extent : list.asArrayRef())
      if (extent < 0 && !ShapedType::isDynamic(extent))
        return error(i) << "extent " << extent << " is negative";
  }
  return success();
}

LogicalResult CollectiveVerifier::verifySizes() {
  int64_t needed, given = op.getSizes().size();
  getTensorSizes(op, &needed);
  if (given == needed)
    return success();
  return op->emitOpError("needs ") << needed << " index operands for its extents, got " << given;
}

LogicalResult CollectiveVerifier::verifySplit(unsigned tensor, int64_t dim, int64_t full,
                                              int64_t local, ArrayRef<int64_t> extents) {
  bool fullKnown = !ShapedType::isDynamic(full), localKnown = !ShapedType::isDynamic(local);
  if (llvm::any_of(extents, ShapedType::isDynamic))
    return success();
  if (!extents.empty()) {
    int64_t sum = std::accumulate(extents.begin(), extents.end(), int64_t(0));
    if (fullKnown && sum != full)
      return error(tensor) << "extents of dim " << dim << " sum to " << sum << ", expected "
                           << full;
    if (localKnown && !llvm::is_contained(extents, local))
      return error(tensor) << "no position has extent " << local << " along dim " << dim;
    return success();
  }
  if (!localKnown)
    return success();
  if (!fullKnown)
    return success();
  // PyTorch's chunk (L3): whole chunks, then at most one shorter, then empty ones.
  int64_t chunk = ceilDiv(full, groupSize);
  int64_t whole = chunk == 0 ? groupSize : full / chunk;
  int64_t rest = full - whole * chunk;
  bool legal = (local == chunk && whole > 0) || (local == rest && whole < groupSize) ||
               (local == 0 && whole + (rest > 0) < groupSize);
  if (!legal)
    return error(tensor) << "no position has extent " << local << " along dim " << dim << " when "
                         << full << " is chunked over " << groupSize;
  return success();
}

/// Pieces that are sent from a buffer may leave its end unused (padded tokens of an expert).
LogicalResult CollectiveVerifier::verifySent(unsigned tensor, int64_t dim, int64_t full,
                                             ArrayRef<int64_t> extents) {
  if (ShapedType::isDynamic(full) || llvm::any_of(extents, ShapedType::isDynamic))
    return success();
  int64_t sum = std::accumulate(extents.begin(), extents.end(), int64_t(0));
  if (sum > full)
    return error(tensor) << "extents of dim " << dim << " sum to " << sum << ", more than " << full;
  return success();
}

LogicalResult CollectiveVerifier::verifyTypes(unsigned tensor) {
  RankedTensorType operand = op.getOperandType(tensor), result = op.getResultTensorType(tensor);
  int64_t split = op.getSplitDim(tensor), concat = op.getConcatDim(tensor);
  ArrayRef<int64_t> splitExtents = op.getSplitExtents(tensor);
  ArrayRef<int64_t> concatExtents = op.getConcatExtents(tensor);
  for (int64_t dim = 0; dim < operand.getRank(); ++dim) {
    int64_t before = operand.getDimSize(dim), after = result.getDimSize(dim);
    // An all-to-all within one dim: what leaves and what arrives are independent.
    bool within = dim == split && dim == concat && !splitExtents.empty();
    if (within) {
      if (failed(verifySent(tensor, dim, before, splitExtents)) ||
          failed(verifySplit(tensor, dim, after, ShapedType::kDynamic, concatExtents)))
        return failure();
    } else if (dim == concat && op.getCollectiveKind() == CollectiveKind::Permute) {
      if (failed(verifySplit(tensor, dim, ShapedType::kDynamic, before, concatExtents)) ||
          failed(verifySplit(tensor, dim, ShapedType::kDynamic, after, concatExtents)))
        return failure();
    } else if (dim == split && dim != concat) {
      if (failed(verifySplit(tensor, dim, before, after, splitExtents)))
        return failure();
    } else if (dim == concat && dim != split) {
      if (failed(verifySplit(tensor, dim, after, before, concatExtents)))
        return failure();
    } else if (failed(verifyCompatibleDims({before, after}))) {
      return error(tensor) << "dim " << dim << " changes from " << before << " to " << after;
    } else if (dim == split && !ShapedType::isDynamic(before) && before % groupSize) {
      return error(tensor) << "without extents, a dim that is both cut and concatenated must be "
                              "a multiple of the group's size "
                           << groupSize << ", got " << before;
    }
  }
  return success();
}

/// What holds for every kind.
static LogicalResult verifyCommon(CollectiveOpInterface op) {
  CollectiveVerifier verifier(op);
  return failure(failed(verifier.verifyResults()) || failed(verifier.verifyReduction()));
}

static LogicalResult verifyTypes(CollectiveOpInterface op) {
  CollectiveVerifier verifier(op);
  for (unsigned i = 0; i < op.getTensors().size(); ++i)
    if (failed(verifier.verifyTypes(i)))
      return failure();
  return verifier.verifySizes();
}

LogicalResult AllReduceOp::verify() {
  return failure(failed(verifyCommon(*this)) || failed(verifyTypes(*this)));
}

LogicalResult AllGatherOp::verify() {
  return failure(failed(verifyCommon(*this)) ||
                 failed(CollectiveVerifier(*this).verifyLists("dim", getDims(), getExtents())) ||
                 failed(verifyTypes(*this)));
}

LogicalResult ReduceScatterOp::verify() {
  return failure(failed(verifyCommon(*this)) ||
                 failed(CollectiveVerifier(*this).verifyLists("dim", getDims(), getExtents())) ||
                 failed(verifyTypes(*this)));
}

LogicalResult AllToAllOp::verify() {
  CollectiveVerifier verifier(*this);
  if (failed(verifyCommon(*this)) ||
      failed(verifier.verifyLists("split dim", getSplitDims(), getSplitExtents())) ||
      failed(verifier.verifyLists("concat dim", getConcatDims(), getConcatExtents())))
    return failure();
  for (unsigned i = 0; i < getTensors().size(); ++i)
    if (getSplitDim(i) == getConcatDim(i) &&
        getSplitExtents(i).empty() != getConcatExtents(i).empty())
      return emitOpError("tensor ") << i
                                    << ": cuts and concatenates one dim, so it needs the extents "
                                       "of both or of neither";
  return verifyTypes(*this);
}

LogicalResult BroadcastOp::verify() {
  if (failed(verifyCommon(*this)))
    return failure();
  if (static_cast<int64_t>(getRoot()) < 0 ||
      static_cast<int64_t>(getRoot()) >= getGroup().getGroupSize())
    return emitOpError("root ") << static_cast<int64_t>(getRoot())
                                << " is not a position in a group of " << getGroup().getGroupSize();
  return verifyTypes(*this);
}

LogicalResult PermuteOp::verify() {
  if (failed(verifyCommon(*this)) || failed(CollectiveVerifier(*this).verifyLists(
                                         "dim", getDims(), getExtents(), /*optional=*/true)))
    return failure();
  for (unsigned i = 0; i < getTensors().size(); ++i)
    if ((getConcatDim(i) < 0) != getConcatExtents(i).empty())
      return emitOpError("tensor ") << i << ": a dim and its extents go together";
  if (getPairs().size() % 2)
    return emitOpError("pairs must be source and target positions, got an odd number of entries");
  int64_t size = getGroup().getGroupSize();
  llvm::SmallBitVector sources(size), targets(size);
  for (size_t i = 0; i < getPairs().size(); ++i) {
    int64_t position = getPairs()[i];
    llvm::SmallBitVector &seen = i % 2 ? targets : sources;
    if (position < 0 || position >= size)
      return emitOpError("position ") << position << " is not in a group of " << size;
    if (seen.test(position))
      return emitOpError("position ")
             << position << " is the " << (i % 2 ? "target" : "source") << " of two pairs";
    seen.set(position);
  }
  return verifyTypes(*this);
}
