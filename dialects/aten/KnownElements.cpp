// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/KnownElements.h"

#include "dialects/aten/Aten.h"
#include "dialects/aten/Concatenation.h"
#include "dialects/aten/ElementBoxes.h"
#include "dialects/aten/KnownNumbers.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace shardc::aten {
namespace {

/// Elements of a tensor that is computed once, such as coordinates.
constexpr int64_t kSmall = int64_t(1) << 18;
/// Positions of a dim that is reduced: coordinates of a few dims, which a mask combines.
constexpr int64_t kMostReduced = 8;
/// Ops that a mask is computed by, one of the other's result.
constexpr int kMostDepth = 200;

struct Depth {
  explicit Depth(int &depth) : depth(depth) { ++depth; }
  ~Depth() { --depth; }
  int &depth;
};

/// Floats of fewer bits.
struct ShortFloats {
  DenseElementsAttr::FloatElementIterator values;

  double operator[](int64_t at) const {
    APFloat value = *(values + at);
    bool isInexact = false;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &isInexact);
    return value.convertToDouble();
  }
};

/// The elements of a constant as they are stored, or of an argument that has them as an attribute.
DenseElementsAttr storedElements(Value tensor) {
  if (auto constant = tensor.getDefiningOp<ConstantOp>())
    return dyn_cast<DenseElementsAttr>(constant.getValue());
  auto argument = dyn_cast<BlockArgument>(tensor);
  auto function =
      argument ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp()) : nullptr;
  if (!function || !argument.getOwner()->isEntryBlock())
    return nullptr;
  return function.getArgAttrOfType<DenseElementsAttr>(argument.getArgNumber(), kElementsAttr);
}

std::optional<Numbers> readStored(DenseElementsAttr stored, const ElementBox &box) {
  Type type = stored.getElementType();
  Numbers result;
  auto read = [&](auto source) {
    Sizes strides = stridesOf(cast<ShapedType>(stored.getType()).getShape());
    int64_t offset = 0;
    for (auto [begin, stride] : llvm::zip_equal(box.begin, strides))
      offset += begin * stride;
    if (stored.isSplat())
      result.assign(box.numElements(), static_cast<double>(source[0]));
    else
      result = pick(source, box.sizes, offset, strides);
  };
  if (stored.empty())
    return result;
  if (type.isInteger(1))
    read(stored.getValues<bool>().begin());
  else if (type.isF32())
    read(stored.getValues<float>().begin());
  else if (type.isF64())
    read(stored.getValues<double>().begin());
  else if (type.isSignlessInteger(64))
    read(stored.getValues<int64_t>().begin());
  else if (type.isSignlessInteger(32))
    read(stored.getValues<int32_t>().begin());
  else if (isa<FloatType>(type)) {
    ShortFloats floats{stored.getValues<APFloat>().begin()};
    read(floats);
  } else {
    return std::nullopt;
  }
  // A double does not hold every integer of 64 bits.
  if (!isa<FloatType>(type) && !settle(type, result))
    return std::nullopt;
  return result;
}

} // namespace

const std::optional<Numbers> *KnownElements::whole(Value tensor) {
  ArrayRef<int64_t> shape = shapeOf(tensor);
  ElementBox box = ElementBox::whole(shape);
  if (box.numElements() > kSmall)
    return nullptr;
  auto found = small.find(tensor);
  if (found == small.end()) {
    std::optional<Numbers> numbers = compute(tensor, box);
    found = small.try_emplace(tensor, std::move(numbers)).first;
  }
  return &found->second;
}

std::optional<Numbers> KnownElements::elements(Value tensor, const ElementBox &box) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type || !type.hasStaticShape() || type.getNumElements() == 0)
    return std::nullopt;
  work -= box.numElements();
  Depth own(depth);
  if (work <= 0 || depth > kMostDepth)
    return std::nullopt;
  const std::optional<Numbers> *all = whole(tensor);
  if (!all)
    return compute(tensor, box);
  if (!*all || ArrayRef(box.sizes) == type.getShape())
    return *all;
  return pickBox(**all, type.getShape(), box);
}

std::optional<Numbers> KnownElements::compute(Value tensor, const ElementBox &box) {
  using Result = std::optional<Numbers>;
  if (DenseElementsAttr stored = storedElements(tensor))
    return readStored(stored, box);
  Operation *op = tensor.getDefiningOp();
  if (!op || op->getNumResults() != 1)
    return std::nullopt;
  if (std::optional<ViewedBox> viewed = viewedBox(op, box)) {
    Result own = elements(op->getOperand(0), viewed->box);
    if (!own)
      return std::nullopt;
    Sizes strides, of = stridesOf(viewed->box.sizes);
    for (int64_t dim : viewed->dims)
      strides.push_back(dim < 0 || viewed->box.sizes[dim] == 1 ? 0 : of[dim]);
    return pick(*own, box.sizes, 0, strides);
  }
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](ArangeOp arange) -> Result {
        if (arange.getStart())
          return std::nullopt;
        Numbers numbers;
        auto start = static_cast<double>(static_cast<int64_t>(arange.getStaticStart()));
        auto step = static_cast<double>(static_cast<int64_t>(arange.getStep()));
        for (int64_t i = 0; i < box.sizes[0]; ++i)
          numbers.push_back(start + static_cast<double>(box.begin[0] + i) * step);
        if (!settle(elementTypeOf(tensor), numbers))
          return std::nullopt;
        return numbers;
      })
      .Case<ViewOp, UnsqueezeOp, SqueezeOp>(
          [&](Operation *) { return reshaped(op->getOperand(0), shapeOf(tensor), box); })
      .Case([&](SliceOp slice) -> Result {
        auto dim = static_cast<size_t>(slice.getDim());
        auto start = static_cast<int64_t>(slice.getStaticStart());
        auto step = static_cast<int64_t>(slice.getStep());
        int64_t size = shapeOf(slice.getSelf())[dim];
        if (slice.getStart() || (step != 1 && box.sizes[dim] == 0))
          return std::nullopt;
        start = std::clamp<int64_t>(start < 0 ? start + size : start, 0, size);
        ElementBox own = box;
        own.begin[dim] = start + box.begin[dim] * step;
        own.sizes[dim] = (box.sizes[dim] - 1) * step + 1;
        Result all = elements(slice.getSelf(), own);
        if (!all || step == 1)
          return all;
        Sizes strides = stridesOf(own.sizes);
        strides[dim] *= step;
        return pick(*all, box.sizes, 0, strides);
      })
      .Case([&](SelectOp select) -> Result {
        auto dim = static_cast<size_t>(select.getDim());
        auto at = static_cast<int64_t>(select.getStaticIndex());
        if (select.getIndex())
          return std::nullopt;
        ElementBox own = box;
        own.begin.insert(own.begin.begin() + dim,
                         at < 0 ? at + shapeOf(select.getSelf())[dim] : at);
        own.sizes.insert(own.sizes.begin() + dim, 1);
        return elements(select.getSelf(), own);
      })
      .Case<TrilOp, TriuOp>([&](Operation *) -> Result {
        Result all = elements(op->getOperand(0), box);
        bool isLower = isa<TrilOp>(op);
        auto diagonal = static_cast<int64_t>(isLower ? cast<TrilOp>(op).getDiagonal()
                                                     : cast<TriuOp>(op).getDiagonal());
        size_t rank = box.sizes.size();
        int64_t rows = box.sizes[rank - 2], columns = box.sizes[rank - 1];
        for (size_t i = 0; all && i < all->size(); ++i) {
          int64_t column = box.begin[rank - 1] + static_cast<int64_t>(i) % columns;
          int64_t row = box.begin[rank - 2] + static_cast<int64_t>(i) / columns % rows;
          if (isLower ? column > row + diagonal : column < row + diagonal)
            (*all)[i] = 0;
        }
        return all;
      })
      .Case([&](CatOp cat) { return joined(op, static_cast<int64_t>(cat.getDim()), box); })
      .Case([&](StackOp stack) { return joined(op, static_cast<int64_t>(stack.getDim()), box); })
      .Case<AllOp, AnyOp, AmaxOp, AminOp>([&](Operation *) { return reduced(op, box); })
      .Default([&](Operation *) { return elementwise(op, box); });
}

std::optional<Numbers> KnownElements::reshaped(Value self, ArrayRef<int64_t> shape,
                                               const ElementBox &box) {
  auto type = cast<RankedTensorType>(self.getType());
  if (!type.hasStaticShape())
    return std::nullopt;
  auto before = boxBefore(type.getShape(), shape, box);
  if (auto *own = std::get_if<ElementBox>(&before))
    return elements(self, *own);
  auto [dim, at] = std::get<Cut>(before);
  Numbers result(box.numElements());
  ElementBox part = box;
  for (Run run : {Run{box.begin[dim], at}, Run{at, box.begin[dim] + box.sizes[dim]}}) {
    part.begin[dim] = run.begin;
    part.sizes[dim] = run.size();
    std::optional<Numbers> own = reshaped(self, shape, part);
    if (!own)
      return std::nullopt;
    paste(result, box.sizes, dim, run.begin - box.begin[dim], *own, run.size());
  }
  return result;
}

std::optional<Numbers> KnownElements::joined(Operation *op, int64_t dim, const ElementBox &box) {
  Numbers result(box.numElements());
  bool isStack = isa<StackOp>(op);
  int64_t from = 0, end = box.begin[dim] + box.sizes[dim];
  SmallVector<Value> parts =
      isStack ? SmallVector<Value>(op->getOperands()) : partsOfCat(op->getOperands());
  for (Value part : parts) {
    int64_t size = isStack ? 1 : shapeOf(part)[dim];
    if (ShapedType::isDynamic(size))
      return std::nullopt;
    Run run{std::max(box.begin[dim], from), std::min(end, from + size)};
    ElementBox own = box;
    own.begin[dim] = run.begin - from;
    own.sizes[dim] = run.size();
    from += size;
    if (run.begin >= run.end)
      continue;
    if (isStack) {
      own.begin.erase(own.begin.begin() + dim);
      own.sizes.erase(own.sizes.begin() + dim);
    }
    std::optional<Numbers> numbers = elements(part, own);
    if (!numbers || !settle(elementTypeOf(op->getResult(0)), *numbers))
      return std::nullopt;
    paste(result, box.sizes, dim, run.begin - box.begin[dim], *numbers, run.size());
  }
  return result;
}

/// The parts of the operand of a reduction over one dim, one for each position there; nothing
/// where it has many.
static std::optional<SmallVector<ElementBox>> reducedBoxes(Operation *op, const ElementBox &box) {
  auto dims = op->getAttrOfType<DenseI64ArrayAttr>("dim");
  ArrayRef<int64_t> shape = shapeOf(op->getOperand(0));
  if (!dims || dims.size() != 1 || shape[dims[0]] < 1 || shape[dims[0]] > kMostReduced)
    return std::nullopt;
  SmallVector<ElementBox> boxes(shape[dims[0]], box);
  for (auto [at, own] : llvm::enumerate(boxes)) {
    if (shape.size() != box.sizes.size()) {
      own.begin.insert(own.begin.begin() + dims[0], 0);
      own.sizes.insert(own.sizes.begin() + dims[0], 1);
    }
    own.begin[dims[0]] = static_cast<int64_t>(at);
  }
  return boxes;
}

std::optional<Numbers> KnownElements::reduced(Operation *op, const ElementBox &box) {
  std::optional<SmallVector<ElementBox>> boxes = reducedBoxes(op, box);
  std::optional<Numbers> result;
  for (const ElementBox &own : boxes.value_or(SmallVector<ElementBox>())) {
    std::optional<Numbers> part = elements(op->getOperand(0), own);
    if (!part)
      return std::nullopt;
    if (isa<AllOp, AnyOp>(op))
      for (double &x : *part)
        x = x != 0;
    if (!result) {
      result = std::move(part);
      continue;
    }
    bool isMost = isa<AnyOp, AmaxOp>(op);
    for (auto [x, y] : llvm::zip_equal(*result, *part))
      x = std::isnan(x) || (isMost ? x > y : x < y) ? x : y;
  }
  return result;
}

std::optional<Numbers> KnownElements::elementwise(Operation *op, const ElementBox &box) {
  if (!isKnownElementwise(op))
    return std::nullopt;
  SmallVector<Numbers, 3> operands;
  for (Value operand : op->getOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (!type || type.getRank() > static_cast<int64_t>(box.sizes.size()))
      return std::nullopt;
    ElementBox own = operandBox(operand, box);
    std::optional<Numbers> numbers = elements(operand, own);
    if (!numbers)
      return std::nullopt;
    operands.push_back(broadcast(std::move(*numbers), own.sizes, box.sizes));
  }
  return shardc::aten::compute(op, operands);
}

std::optional<NumberRange> KnownElements::range(Value tensor, const ElementBox &box) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  Operation *op = tensor.getDefiningOp();
  if (!type || !type.hasStaticShape() || box.numElements() == 0 || --work <= 0)
    return std::nullopt;
  Depth deeper(depth);
  if (depth > kMostDepth)
    return std::nullopt;
  if (const std::optional<Numbers> *all = whole(tensor)) {
    if (!*all)
      return std::nullopt;
    std::optional<Numbers> own = elements(tensor, box);
    if (!own || llvm::any_of(*own, [](double x) { return std::isnan(x); }))
      return std::nullopt;
    auto [low, high] = std::minmax_element(own->begin(), own->end());
    return NumberRange{*low, *high};
  }
  if (DenseElementsAttr stored = storedElements(tensor); stored && stored.isSplat()) {
    size_t rank = box.sizes.size();
    std::optional<Numbers> one = readStored(stored, {Sizes(rank, 0), Sizes(rank, 1)});
    return one ? std::optional(NumberRange{one->front(), one->front()}) : std::nullopt;
  }
  if (!op || op->getNumResults() != 1)
    return std::nullopt;
  if (std::optional<ViewedBox> viewed = viewedBox(op, box))
    return range(op->getOperand(0), viewed->box);
  if (isa<ViewOp, UnsqueezeOp, SqueezeOp>(op)) {
    ArrayRef<int64_t> from = shapeOf(op->getOperand(0));
    if (llvm::any_of(from, ShapedType::isDynamic))
      return std::nullopt;
    auto before = boxBefore(from, type.getShape(), box);
    auto *own = std::get_if<ElementBox>(&before);
    return own ? range(op->getOperand(0), *own) : std::nullopt;
  }
  if (isa<AllOp, AnyOp, AmaxOp, AminOp>(op)) {
    std::optional<SmallVector<ElementBox>> boxes = reducedBoxes(op, box);
    std::optional<NumberRange> result;
    for (const ElementBox &own : boxes.value_or(SmallVector<ElementBox>())) {
      std::optional<NumberRange> part = range(op->getOperand(0), own);
      if (!part)
        return std::nullopt;
      if (isa<AllOp, AnyOp>(op))
        *part = {part->low > 0 || part->high < 0 ? 1.0 : 0.0,
                 part->low == 0 && part->high == 0 ? 0.0 : 1.0};
      bool isMost = isa<AnyOp, AmaxOp>(op);
      if (!result)
        result = part;
      else if (isMost)
        result = {std::max(result->low, part->low), std::max(result->high, part->high)};
      else
        result = {std::min(result->low, part->low), std::min(result->high, part->high)};
    }
    return result;
  }
  if (!isKnownElementwise(op))
    return std::nullopt;
  SmallVector<NumberRange, 3> operands;
  for (Value operand : op->getOperands()) {
    auto own = dyn_cast<RankedTensorType>(operand.getType());
    if (!own || own.getRank() > static_cast<int64_t>(box.sizes.size()))
      return std::nullopt;
    std::optional<NumberRange> part = range(operand, operandBox(operand, box));
    if (!part)
      return std::nullopt;
    operands.push_back(*part);
  }
  return bound(op, operands);
}

} // namespace shardc::aten
