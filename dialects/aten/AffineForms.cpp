// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/AffineForms.h"

#include "dialects/aten/AffineFormsDetail.h"
#include "dialects/aten/Aten.h"
#include "dialects/aten/Concatenation.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shardc::aten {

using namespace detail;

ArrayRef<int64_t> FormContext::resultShape() const { return shapeOf(op->getResult(0)); }

AffineForm detail::splatForm(int64_t value, size_t rank) {
  return {SmallVector<int64_t>(rank, 0), value};
}

Form detail::combine(const AffineForm &a, const AffineForm &b, int64_t factor,
                     ArrayRef<int64_t> shape) {
  AffineForm result = splatForm(0, shape.size());
  bool overflow = false;
  auto add = [&](int64_t &to, int64_t value, int64_t scale) {
    int64_t product = 0;
    overflow |= llvm::MulOverflow(value, scale, product) || llvm::AddOverflow(to, product, to);
  };
  for (auto [form, scale] : {std::pair(&a, int64_t(1)), std::pair(&b, factor)}) {
    add(result.constant, form->constant, scale);
    size_t missing = shape.size() - form->coefficients.size();
    for (auto [i, coefficient] : llvm::enumerate(form->coefficients))
      add(result.coefficients[missing + i], coefficient, scale);
  }
  return overflow ? Form() : Form(result);
}

std::pair<Bound, Bound> detail::range(const AffineForm &form, ArrayRef<int64_t> shape) {
  Bound low = form.constant, high = form.constant;
  for (auto [coefficient, size] : llvm::zip(form.coefficients, shape)) {
    if (coefficient == 0)
      continue;
    Bound &bound = coefficient > 0 ? high : low;
    int64_t reach = 0;
    if (ShapedType::isDynamic(size) || !bound ||
        llvm::MulOverflow(coefficient, std::max<int64_t>(size - 1, 0), reach) ||
        llvm::AddOverflow(*bound, reach, *bound))
      bound = std::nullopt;
  }
  return {low, high};
}

//===--------------------------------------------------------------------------------------------===//
// Rearrangements: a function from dims of the result to dims of the operand
//===--------------------------------------------------------------------------------------------===//

std::optional<SmallVector<int64_t>> detail::sourceDims(Operation *op) {
  auto view = dyn_cast<TensorViewOpInterface>(op);
  return view && view.getViewKind() != ViewKind::Part ? view.getSourceDims() : std::nullopt;
}

AffineForm detail::rearrange(const AffineForm &form, ArrayRef<int64_t> dims) {
  AffineForm result = splatForm(form.constant, dims.size());
  for (auto [coefficient, dim] : llvm::zip(result.coefficients, dims))
    coefficient = dim < 0 ? 0 : form.coefficients[dim];
  return result;
}

namespace {

//===--------------------------------------------------------------------------------------------===//
// Constants
//===--------------------------------------------------------------------------------------------===//

/// Elements of a small constant, if they are affine in their position.
Form constantForm(DenseElementsAttr value) {
  auto type = cast<RankedTensorType>(value.getType());
  constexpr int64_t maxElements = 1024;
  if (!type.getElementType().isSignlessInteger() || value.empty())
    return std::nullopt;
  if (value.isSplat())
    return splatForm(value.getSplatValue<APInt>().getSExtValue(), type.getRank());
  if (type.getNumElements() > maxElements)
    return std::nullopt;
  SmallVector<int64_t> elements;
  for (const APInt &element : value.getValues<APInt>())
    elements.push_back(element.getSExtValue());
  AffineForm form = splatForm(elements.front(), type.getRank());
  int64_t stride = 1;
  for (int64_t d = type.getRank() - 1; d >= 0; --d) {
    if (type.getDimSize(d) > 1 &&
        llvm::SubOverflow(elements[stride], elements.front(), form.coefficients[d]))
      return std::nullopt;
    stride *= type.getDimSize(d);
  }
  if (llvm::any_of(form.coefficients, [](int64_t c) { return c != int32_t(c); }))
    return std::nullopt; // sums below cannot overflow then
  for (auto [i, element] : llvm::enumerate(elements)) {
    int64_t rest = static_cast<int64_t>(i), expected = form.constant;
    for (int64_t d = type.getRank() - 1; d >= 0; --d) {
      expected += form.coefficients[d] * (rest % type.getDimSize(d));
      rest /= type.getDimSize(d);
    }
    if (expected != element)
      return std::nullopt;
  }
  return form;
}

/// form with position `shift + step * i` in dim d.
Form reposition(const AffineForm &form, int64_t dim, int64_t shift, int64_t step) {
  AffineForm result = form;
  int64_t offset = 0, &coefficient = result.coefficients[dim];
  if (llvm::MulOverflow(coefficient, shift, offset) ||
      llvm::AddOverflow(result.constant, offset, result.constant) ||
      llvm::MulOverflow(coefficient, step, coefficient))
    return std::nullopt;
  return result;
}

/// Static position of a slice's or select's bound, counted from the front; nothing if unknown.
std::optional<int64_t> position(int64_t bound, int64_t size) {
  if (ShapedType::isDynamic(bound) || (bound < 0 && ShapedType::isDynamic(size)))
    return std::nullopt;
  if (bound < 0)
    bound += size;
  return ShapedType::isDynamic(size) ? bound : std::clamp<int64_t>(bound, 0, size);
}

//===--------------------------------------------------------------------------------------------===//
// Integers
//===--------------------------------------------------------------------------------------------===//

Form catForm(CatOp op, const FormContext &context) {
  int64_t dim = op.getDim(), offset = 0;
  Form joined;
  std::optional<int64_t> step;
  // A part of several elements tells the step; one element before it must fit.
  SmallVector<Value> parts = partsOfCat(op.getTensors());
  for (Value part : parts) {
    const AffineForm *form = context.forms.getAffine(part);
    if (!form)
      return std::nullopt;
    if (!step && shapeOf(part)[dim] != 1 && shapeOf(part)[dim] != 0)
      step = form->coefficients[dim];
  }
  if (!step)
    return std::nullopt; // single elements only: rare, and may be anything
  for (Value part : parts) {
    int64_t size = shapeOf(part)[dim];
    if (size == 0)
      continue;
    AffineForm form = *context.forms.getAffine(part);
    if (size == 1)
      form.coefficients[dim] = *step;
    if (!joined)
      joined = form;
    // What comes after a part of dynamic size starts nobody knows where.
    Form expected = ShapedType::isDynamic(offset) ? Form() : reposition(*joined, dim, offset, 1);
    if (!expected || !(*expected == form))
      return std::nullopt;
    offset = ShapedType::isDynamic(size) ? size : offset + size;
  }
  return joined;
}

/// self at positions that are affine themselves: substitute them.
Form indexForm(IndexOp op, const FormContext &context) {
  const AffineForm *self = context.operand(0);
  ArrayRef<int64_t> at = op.getIndicesAt(), shape = context.resultShape();
  if (!self || (!self->isConstant() && at.size() != self->coefficients.size()))
    return std::nullopt;
  Form result = splatForm(self->constant, shape.size());
  for (auto [value, dim] : llvm::zip(op.getIndices(), at)) {
    const AffineForm *index = context.forms.getAffine(value);
    if (self->coefficients[dim] == 0)
      continue;
    // A negative index would count from the end.
    if (!index || range(*index, shapeOf(value)).first.value_or(-1) < 0)
      return std::nullopt;
    result = combine(*result, *index, self->coefficients[dim], shape);
    if (!result)
      return std::nullopt;
  }
  return result;
}

Form gatherForm(GatherOp op, const FormContext &context) {
  const AffineForm *self = context.operand(0), *index = context.operand(1);
  ArrayRef<int64_t> shape = context.resultShape();
  if (!self || self->coefficients.size() != shape.size() || shape.empty())
    return std::nullopt;
  int64_t dim = op.getDim(), coefficient = self->coefficients[dim];
  AffineForm rest = *self;
  rest.coefficients[dim] = 0;
  if (coefficient == 0)
    return rest;
  if (!index || range(*index, shapeOf(op.getIndex())).first.value_or(-1) < 0)
    return std::nullopt;
  return combine(rest, *index, coefficient, shape);
}

} // namespace

Form detail::integerForm(const FormContext &context) {
  Operation *op = context.op;
  if (auto dims = sourceDims(op); dims) {
    const AffineForm *form = context.operand(0);
    return form ? Form(rearrange(*form, *dims)) : std::nullopt;
  }
  DenseElementsAttr constant;
  if (matchPattern(op, m_Constant(&constant)))
    return constantForm(constant);
  auto sum = [&](double alpha) -> Form {
    const AffineForm *lhs = context.operand(0), *rhs = context.operand(1);
    if (!lhs || !rhs || alpha != int64_t(alpha))
      return std::nullopt;
    return combine(*lhs, *rhs, static_cast<int64_t>(alpha), context.resultShape());
  };
  return llvm::TypeSwitch<Operation *, Form>(op)
      .Case([&](ArangeOp arange) -> Form {
        if (arange.getStart())
          return std::nullopt;
        return AffineForm{{static_cast<int64_t>(arange.getStep())},
                          static_cast<int64_t>(arange.getStaticStart())};
      })
      .Case([&](AddOp add) { return sum(add.getAlpha().convertToDouble()); })
      .Case([&](SubOp sub) { return sum(-sub.getAlpha().convertToDouble()); })
      .Case([&](NegOp) -> Form {
        const AffineForm *form = context.operand(0);
        return form ? combine(splatForm(0, 0), *form, -1, context.resultShape()) : std::nullopt;
      })
      .Case([&](MulOp) -> Form {
        const AffineForm *lhs = context.operand(0), *rhs = context.operand(1);
        if (!lhs || !rhs || (!lhs->isConstant() && !rhs->isConstant()))
          return std::nullopt;
        if (lhs->isConstant())
          std::swap(lhs, rhs);
        return combine(splatForm(0, 0), *lhs, rhs->constant, context.resultShape());
      })
      .Case([&](ToCopyOp) -> Form {
        Type from = elementTypeOf(op->getOperand(0)), to = elementTypeOf(op->getResult(0));
        if (std::optional<int64_t> value = context.forms.getSplat(op->getOperand(0)))
          return splatForm(*value, context.resultShape().size());
        const AffineForm *form = context.operand(0);
        bool widens = from.getIntOrFloatBitWidth() <= to.getIntOrFloatBitWidth();
        return form && widens ? Form(*form) : std::nullopt;
      })
      .Case([&](SliceOp slice) -> Form {
        const AffineForm *form = context.operand(0);
        int64_t dim = slice.getDim();
        std::optional<int64_t> start =
            position(slice.getStaticStart(), shapeOf(slice.getSelf())[dim]);
        return form && start ? reposition(*form, dim, *start, slice.getStep()) : std::nullopt;
      })
      .Case([&](SelectOp select) -> Form {
        const AffineForm *form = context.operand(0);
        int64_t dim = select.getDim();
        std::optional<int64_t> index =
            position(select.getStaticIndex(), shapeOf(select.getSelf())[dim]);
        Form moved = form && index ? reposition(*form, dim, *index, 0) : std::nullopt;
        return moved ? Form(rearrange(*moved, *select.getSourceDims())) : std::nullopt;
      })
      .Case([&](CatOp cat) { return catForm(cat, context); })
      .Case([&](IndexOp index) { return indexForm(index, context); })
      .Case([&](GatherOp gather) { return gatherForm(gather, context); })
      .Case([&](CumsumOp cumsum) -> Form {
        std::optional<int64_t> value = context.forms.getSplat(cumsum.getSelf());
        if (!value)
          return std::nullopt;
        Form result = splatForm(*value, context.resultShape().size());
        if (!result->coefficients.empty())
          result->coefficients[cumsum.getDim()] = *value;
        return result;
      })
      .Default([](Operation *) { return std::nullopt; });
}

static Form dropUnitDims(Form form, ArrayRef<int64_t> shape) {
  if (form)
    for (auto [coefficient, size] : llvm::zip(form->coefficients, shape))
      if (size == 1)
        coefficient = 0;
  return form;
}

void AffineForms::visit(Operation *op) {
  if (op->getNumResults() != 1)
    return;
  Value result = op->getResult(0);
  auto type = dyn_cast<RankedTensorType>(result.getType());
  if (!type)
    return;
  FormContext context{*this, op};
  if (type.getElementType().isInteger(1)) {
    if (Mask mask = boolForm(context))
      masks[result] = std::move(*mask);
  } else if (type.getElementType().isSignlessInteger()) {
    if (Form form = dropUnitDims(integerForm(context), type.getShape()))
      affine[result] = std::move(*form);
  } else if (isa<FloatType>(type.getElementType())) {
    if (Mask mask = additiveForm(context))
      additive[result] = std::move(*mask);
  }
}

void AffineForms::copy(Value value, Value other) {
  if (const AffineForm *form = getAffine(other))
    affine[value] = AffineForm(*form);
  if (const MaskForm *mask = getMask(other))
    masks[value] = MaskForm(*mask);
}

const AffineForm *AffineForms::getAffine(Value value) const {
  auto it = affine.find(value);
  return it == affine.end() ? nullptr : &it->second;
}

const MaskForm *AffineForms::getMask(Value value) const {
  auto it = masks.find(value);
  return it == masks.end() ? nullptr : &it->second;
}

std::optional<int64_t> AffineForms::getSplat(Value value) const {
  if (const AffineForm *form = getAffine(value); form && form->isConstant())
    return form->constant;
  if (const MaskForm *mask = getMask(value); mask && (mask->isFalse || mask->isTrue()))
    return mask->isTrue();
  return std::nullopt;
}

const MaskForm *AffineForms::visibility(Value mask) const {
  if (const MaskForm *form = getMask(mask))
    return form;
  auto it = additive.find(mask);
  return it == additive.end() ? nullptr : &it->second;
}

bool AffineForms::isAllVisible(Value mask) const {
  const MaskForm *form = visibility(mask);
  return form && form->isTrue();
}

bool AffineForms::isCausal(Value mask) const {
  const MaskForm *form = visibility(mask);
  if (!form || form->conditions.size() != 1)
    return false;
  const AffineForm &condition = form->conditions.front();
  size_t rank = condition.coefficients.size();
  if (rank < 2 || condition.constant != 0)
    return false;
  ArrayRef<int64_t> coefficients = condition.coefficients;
  return coefficients[rank - 2] == 1 && coefficients[rank - 1] == -1 &&
         llvm::all_of(coefficients.drop_back(2), [](int64_t c) { return c == 0; });
}

} // namespace shardc::aten
