// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What makes a collective of the host program legal: the table of shapes in
// runtime/abi/shardrt_program.h, as far as types say sizes.

#include "dialects/exec/ElementTypes.h"
#include "dialects/exec/Internal.h"

#include "llvm/ADT/SmallBitVector.h"

#include <numeric>

using namespace mlir;
using namespace shardc;
using namespace shardc::exec;

bool shardc::exec::mayBeDense(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset, expected = 1;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return false;
  if (llvm::is_contained(type.getShape(), 0))
    return true;
  for (int64_t dim = type.getRank(); dim-- > 0;) {
    int64_t size = type.getDimSize(dim);
    if (size == 1)
      continue;
    if (!ShapedType::isDynamic(strides[dim]) && !ShapedType::isDynamic(expected) &&
        strides[dim] != expected)
      return false;
    bool known = !ShapedType::isDynamic(size) && !ShapedType::isDynamic(expected);
    expected = known ? expected * size : ShapedType::kDynamic;
  }
  return true;
}

namespace {

/// Whether kinds gather or scatter along a dim.
enum class Along { Never, Maybe, Always };

struct KindRule {
  Along gather, scatter;
  bool gathersInput;  // inputs have one position's extent along the gather dim; outputs are whole
  bool gathersOutput; // outputs have one position's extent along the gather dim, too
};

KindRule ruleOf(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllReduce:
  case CollectiveKind::Broadcast:
    return {Along::Never, Along::Never, false, false};
  case CollectiveKind::AllGather:
    return {Along::Always, Along::Never, true, false};
  case CollectiveKind::ReduceScatter:
    return {Along::Never, Along::Always, false, false};
  case CollectiveKind::AllToAll:
    return {Along::Always, Along::Always, true, false};
  case CollectiveKind::Permute:
    return {Along::Maybe, Along::Never, true, true};
  }
  llvm_unreachable("all kinds are covered");
}

/// Verifies one collective; each check emits its own error and returns failure.
class Verifier {
public:
  explicit Verifier(CollectiveCallInterface op)
      : op(op), rule(ruleOf(op.getKind())), groupSize(op.getGroup().getGroupSize()) {}

  LogicalResult verify();

private:
  InFlightDiagnostic error(unsigned tensor) { return op->emitOpError("tensor ") << tensor << ": "; }
  StringRef kind() { return nameOf(op.getKind()); }
  LogicalResult verifyKind();
  LogicalResult verifyPairs();
  LogicalResult verifyCounts();
  LogicalResult verifyTypes(unsigned tensor);
  LogicalResult verifyDim(unsigned tensor, StringRef name, int64_t dim, Along along);
  LogicalResult verifyList(unsigned tensor, StringRef name, int64_t dim, ArrayRef<int64_t> list);
  LogicalResult verifyExchange(unsigned tensor);
  LogicalResult verifySide(unsigned tensor, bool isInput);
  LogicalResult verifySizes();
  /// Whether a tensor is cut and concatenated along one dim.
  bool isExchange(unsigned tensor) {
    return op.getGatherDims()[tensor] >= 0 &&
           op.getGatherDims()[tensor] == op.getScatterDims()[tensor];
  }
  bool isSomebodysExtent(int64_t extent, int64_t full, ArrayRef<int64_t> list);

  MemRefType memory(unsigned tensor, bool isInput) {
    return cast<MemRefType>((isInput ? op.getInputs() : op.getOutputs())[tensor].getType());
  }
  static ArrayRef<int64_t> listAt(ArrayAttr lists, unsigned tensor) {
    return cast<DenseI64ArrayAttr>(lists[tensor]).asArrayRef();
  }

  CollectiveCallInterface op;
  KindRule rule;
  int64_t groupSize;
};

LogicalResult Verifier::verifyKind() {
  bool hasReduction = op.getReductionAttr() != nullptr;
  if (reduces(op.getKind()) != hasReduction)
    return op->emitOpError() << kind()
                             << (hasReduction ? " combines nothing, but has a reduction"
                                              : " needs a reduction");
  int64_t root = op.getRoot();
  bool isBroadcast = op.getKind() == CollectiveKind::Broadcast;
  if (!isBroadcast && root != 0)
    return op->emitOpError() << kind() << " has no root, but 'root' is " << root;
  if (isBroadcast && (root < 0 || root >= groupSize))
    return op->emitOpError("root ") << root << " is not a position in a group of " << groupSize;
  return verifyPairs();
}

LogicalResult Verifier::verifyPairs() {
  ArrayRef<int64_t> pairs = op.getPairs();
  if (op.getKind() != CollectiveKind::Permute && !pairs.empty())
    return op->emitOpError() << kind() << " has no pairs, but 'pairs' has " << pairs.size()
                             << " entries";
  if (pairs.size() % 2)
    return op->emitOpError(
        "pairs must be source and target positions, got an odd number of entries");
  llvm::SmallBitVector targets(groupSize);
  for (auto [i, position] : llvm::enumerate(pairs)) {
    if (position < 0 || position >= groupSize)
      return op->emitOpError("position ") << position << " is not in a group of " << groupSize;
    if (i % 2 && targets.test(position))
      return op->emitOpError("position ") << position << " is the target of two pairs";
    if (i % 2)
      targets.set(position);
  }
  return success();
}

LogicalResult Verifier::verifyCounts() {
  size_t tensors = op.getInputs().size();
  std::pair<StringRef, size_t> counts[] = {
      {"outputs", op.getOutputs().size()},
      {"element types", op.getElementTypes().size()},
      {"gather dims", op.getGatherDims().size()},
      {"scatter dims", op.getScatterDims().size()},
      {"lists of extents", op.getExtents().size()},
      {"lists of gather extents", op.getGatherExtents().size()},
      {"lists of scatter extents", op.getScatterExtents().size()}};
  for (auto [name, count] : counts)
    if (count != tensors)
      return op->emitOpError("has ") << count << " " << name << " for " << tensors << " inputs";
  return success();
}

LogicalResult Verifier::verifyTypes(unsigned tensor) {
  Type element = cast<TypeAttr>(op.getElementTypes()[tensor]).getValue();
  if (runtimeType(element) == 0)
    return error(tensor) << "has the element type " << element
                         << ", which the runtime does not have";
  Type stored = element;
  if (auto integer = dyn_cast<IntegerType>(element))
    stored = IntegerType::get(op->getContext(), std::max(8u, integer.getWidth()));
  for (bool isInput : {true, false}) {
    MemRefType type = memory(tensor, isInput);
    StringRef side = isInput ? "input" : "output";
    if (type.getElementType() != stored)
      return error(tensor) << "has the element type " << element << ", but its " << side << " is "
                           << type;
    if (type.getRank() != static_cast<int64_t>(listAt(op.getExtents(), tensor).size()))
      return error(tensor) << "has " << listAt(op.getExtents(), tensor).size()
                           << " full extents, but its " << side << " is " << type;
    if (!mayBeDense(type))
      return error(tensor) << "its " << side << " is not dense: " << type;
  }
  for (int64_t extent : listAt(op.getExtents(), tensor))
    if (extent < 0 && !ShapedType::isDynamic(extent))
      return error(tensor) << "has the negative extent " << extent;
  return success();
}

LogicalResult Verifier::verifyDim(unsigned tensor, StringRef name, int64_t dim, Along along) {
  int64_t rank = memory(tensor, true).getRank();
  if (along == Along::Never && dim != -1)
    return error(tensor) << kind() << " has no " << name << " dim, got " << dim;
  if (dim < (along == Along::Always ? 0 : -1) || dim >= rank)
    return error(tensor) << name << " dim " << dim << " is out of range for "
                         << memory(tensor, true);
  return success();
}

LogicalResult Verifier::verifyList(unsigned tensor, StringRef name, int64_t dim,
                                   ArrayRef<int64_t> list) {
  if (list.empty())
    return success();
  if (dim < 0)
    return error(tensor) << "has " << name << " extents without a " << name << " dim";
  if (static_cast<int64_t>(list.size()) != groupSize)
    return error(tensor) << "expected one " << name << " extent for each of " << groupSize
                         << " positions of the group, got " << list.size();
  if (llvm::any_of(list, ShapedType::isDynamic))
    return success();
  for (int64_t extent : list)
    if (extent < 0)
      return error(tensor) << "has the negative extent " << extent;
  if (isExchange(tensor))
    return success();
  int64_t full = listAt(op.getExtents(), tensor)[dim];
  int64_t sum = std::accumulate(list.begin(), list.end(), int64_t(0));
  if (op.getKind() != CollectiveKind::Permute && !ShapedType::isDynamic(full) && sum != full)
    return error(tensor) << name << " extents sum to " << sum << ", expected " << full;
  return success();
}

/// The sum of a list; kDynamic where it is not known.
int64_t sumOf(ArrayRef<int64_t> list) {
  if (llvm::any_of(list, ShapedType::isDynamic))
    return ShapedType::kDynamic;
  return std::accumulate(list.begin(), list.end(), int64_t(0));
}

/// Of an exchange the full extent is what this rank has, the pieces that leave may be less, and
/// those that arrive are the output.
LogicalResult Verifier::verifyExchange(unsigned tensor) {
  int64_t dim = op.getGatherDims()[tensor], full = listAt(op.getExtents(), tensor)[dim];
  ArrayRef<int64_t> arriving = listAt(op.getGatherExtents(), tensor),
                    leaving = listAt(op.getScatterExtents(), tensor);
  if (arriving.empty() != leaving.empty())
    return error(tensor) << "gathers and scatters dim " << dim
                         << ", so it needs the extents of both or of neither";
  if (leaving.empty()) {
    if (!ShapedType::isDynamic(full) && full % groupSize)
      return error(tensor) << "without extents, a dim that is both gathered and scattered must be "
                              "a multiple of the group's size "
                           << groupSize << ", got " << full;
    return success();
  }
  int64_t sum = sumOf(leaving);
  if (!ShapedType::isDynamic(sum) && !ShapedType::isDynamic(full) && sum > full)
    return error(tensor) << "scatter extents sum to " << sum << ", more than " << full;
  return success();
}

bool Verifier::isSomebodysExtent(int64_t extent, int64_t full, ArrayRef<int64_t> list) {
  if (ShapedType::isDynamic(extent) || llvm::any_of(list, ShapedType::isDynamic))
    return true;
  if (!list.empty())
    return llvm::is_contained(list, extent);
  if (ShapedType::isDynamic(full))
    return true;
  // PyTorch's chunk (L3).
  int64_t chunk = llvm::divideCeil(full, groupSize);
  for (int64_t position : {int64_t(0), chunk ? full / chunk : 0, groupSize - 1}) {
    int64_t begin = std::min(full, position * chunk), end = std::min(full, begin + chunk);
    if (position < groupSize && extent == end - begin)
      return true;
  }
  return false;
}

LogicalResult Verifier::verifySide(unsigned tensor, bool isInput) {
  MemRefType type = memory(tensor, isInput);
  StringRef side = isInput ? "input" : "output";
  int64_t gather = op.getGatherDims()[tensor], scatter = op.getScatterDims()[tensor];
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    int64_t size = type.getDimSize(dim), full = listAt(op.getExtents(), tensor)[dim];
    if (dim == gather && isExchange(tensor) && !isInput &&
        !listAt(op.getGatherExtents(), tensor).empty())
      full = sumOf(listAt(op.getGatherExtents(), tensor));
    bool isPart = !isExchange(tensor) &&
                  ((dim == gather && (isInput ? rule.gathersInput : rule.gathersOutput)) ||
                   (dim == scatter && !isInput));
    if (isPart) {
      ArrayRef<int64_t> list =
          listAt(dim == gather ? op.getGatherExtents() : op.getScatterExtents(), tensor);
      // A permute without a list moves whole extents.
      bool isWhole = list.empty() && op.getKind() == CollectiveKind::Permute;
      if (isWhole ? size != full && !ShapedType::isDynamic(size) && !ShapedType::isDynamic(full)
                  : !isSomebodysExtent(size, full, list))
        return error(tensor) << "no position has extent " << size << " along dim " << dim
                             << " of its " << side;
    } else if (!ShapedType::isDynamic(size) && !ShapedType::isDynamic(full) && size != full) {
      return error(tensor) << "dim " << dim << " of its " << side << " is " << size
                           << ", but the full extent is " << full;
    }
  }
  return success();
}

LogicalResult Verifier::verifySizes() {
  int64_t needed = 0, given = op.getSizes().size();
  for (unsigned i = 0; i < op.getInputs().size(); ++i)
    for (ArrayAttr lists : {op.getExtents(), op.getGatherExtents(), op.getScatterExtents()})
      needed += llvm::count_if(listAt(lists, i), ShapedType::isDynamic);
  if (needed == given)
    return success();
  return op->emitOpError("needs ") << needed << " sizes for its extents, got " << given;
}

LogicalResult Verifier::verify() {
  if (failed(verifyKind()) || failed(verifyCounts()))
    return failure();
  for (unsigned i = 0; i < op.getInputs().size(); ++i) {
    int64_t gather = op.getGatherDims()[i], scatter = op.getScatterDims()[i];
    if (failed(verifyTypes(i)) || failed(verifyDim(i, "gather", gather, rule.gather)) ||
        failed(verifyDim(i, "scatter", scatter, rule.scatter)))
      return failure();
    if (failed(verifyList(i, "gather", gather, listAt(op.getGatherExtents(), i))) ||
        failed(verifyList(i, "scatter", scatter, listAt(op.getScatterExtents(), i))) ||
        (isExchange(i) && failed(verifyExchange(i))) || failed(verifySide(i, /*isInput=*/true)) ||
        failed(verifySide(i, /*isInput=*/false)))
      return failure();
  }
  return verifySizes();
}

} // namespace

LogicalResult CollectiveOp::verify() { return Verifier(*this).verify(); }

LogicalResult StartOp::verify() { return Verifier(*this).verify(); }

LogicalResult WaitOp::verify() {
  if (!getToken().getDefiningOp<StartOp>())
    return emitOpError("waits for a token that no exec.start makes");
  return success();
}
