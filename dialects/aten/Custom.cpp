// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Custom.h"

#include "dialects/aten/Emitter.h"
#include "dialects/aten/Inference.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/aten/Custom.cpp.inc"

namespace shardc::aten {

bool givesSize(const RuleText &rule, StringRef name) {
  return llvm::any_of(rule.operands, [&](const std::vector<TextDim> &dims) {
    return llvm::any_of(dims, [&](const TextDim &dim) {
      return dim.names.size() == 1 && dim.names.front() == name;
    });
  });
}

RuleText withoutPadding(RuleText rule) {
  for (std::vector<TextDim> &dims : rule.operands)
    for (TextDim &dim : dims)
      if (dim.window) {
        dim.window->padding = 0;
        dim.window->mode = "zeros";
      }
  return rule;
}

static Value padWithZeros(OpBuilder &builder, Location loc, Value operand,
                          const std::vector<TextDim> &dims) {
  SmallVector<int64_t> widths;
  for (const TextDim &dim : llvm::reverse(dims)) {
    bool isPadded = dim.window && dim.window->mode == "zeros";
    widths.append(2, isPadded ? dim.window->padding : 0);
  }
  if (llvm::all_of(widths, [](int64_t width) { return width == 0; }))
    return operand;
  return ConstantPadNdOp::create(builder, loc, operand, widths, APFloat(0.0));
}

/// The border of `count` elements on one side of a dim of `size`, made of the dim's own elements.
static Value buildBorder(Emitter &emit, Value x, int64_t dim, int64_t count, int64_t size,
                         StringRef mode, bool isBefore) {
  OpBuilder &b = emit.getBuilder();
  auto slice = [&](int64_t begin, int64_t end) {
    return emit.slice(x, dim, b.getIndexAttr(begin), b.getIndexAttr(end));
  };
  if (mode == "circular")
    return isBefore ? slice(size - count, size) : slice(0, count);
  if (mode == "reflect") {
    Value inner = isBefore ? slice(1, count + 1) : slice(size - 1 - count, size - 1);
    return FlipOp::create(b, emit.getLoc(), inner, ArrayRef(dim));
  }
  Value edge = isBefore ? slice(0, 1) : slice(size - 1, size);
  SmallVector<int64_t> sizes(shapeOf(edge));
  sizes[dim] = count;
  return ExpandOp::create(b, emit.getLoc(), edge, sizes, ValueRange());
}

Value buildWindowPadding(OpBuilder &builder, Location loc, Value operand,
                         const std::vector<TextDim> &dims) {
  operand = padWithZeros(builder, loc, operand, dims);
  Emitter emit(builder, loc);
  for (auto [d, dim] : llvm::enumerate(dims)) {
    if (!dim.window || dim.window->padding == 0 || dim.window->mode == "zeros")
      continue;
    auto place = static_cast<int64_t>(d);
    int64_t size = shapeOf(operand)[d], count = dim.window->padding;
    StringRef mode = dim.window->mode;
    // A border is no longer than what it is made of.
    int64_t longest = mode == "reflect" ? size - 1 : mode == "circular" ? size : size ? count : 0;
    bool isKnown =
        mode == "replicate" ? typeOf(operand).hasStaticShape() : !ShapedType::isDynamic(size);
    if (!isKnown || count > longest)
      return {};
    Value before = buildBorder(emit, operand, place, count, size, mode, /*isBefore=*/true);
    Value after = buildBorder(emit, operand, place, count, size, mode, /*isBefore=*/false);
    operand = emit.cat({before, operand, after}, place);
  }
  return operand;
}

RuleText ruleOf(CustomOp op) {
  std::string error;
  return RuleText::parse(op.getRule().str(), error).value_or(RuleText());
}

LogicalResult CustomOp::verify() {
  std::string error;
  std::optional<RuleText> rule = RuleText::parse(getRule().str(), error);
  if (!rule)
    return emitOpError() << error;
  for (const std::vector<TextDim> &dims : rule->operands)
    for (const TextDim &dim : dims)
      if (dim.window && dim.window->padding != 0)
        return emitOpError("has a window with padding, which an op in front of it is to add");
  for (const std::string &problem :
       rule->check(shapesOf(getOperands().getTypes()), shapesOf(getResults().getTypes())))
    return emitOpError() << "cannot have the rule '" << getRule() << "': " << problem;
  for (unsigned i = 0; i < rule->operands.size(); ++i)
    if (rule->isUnused(i))
      return emitOpError("has an operand that its function does not need: ") << i;
  if (std::optional<ArrayAttr> backward = getBackward())
    for (Attribute entry : *backward) {
      auto function = dyn_cast<DictionaryAttr>(entry);
      for (StringRef name : {kCustomRuleAttr, kCustomSymbolAttr})
        if (!function || !function.getAs<StringAttr>(name))
          return emitOpError("has no '") << name << "' in its 'backward'";
    }
  return success();
}

ShardingRule CustomOp::getShardingRule() {
  return ruleOf(*this).build(shapesOf(getOperands().getTypes()), shapesOf(getResults().getTypes()));
}

KernelForm CustomOp::getKernelForm() { return KernelForm::Call; }

/// The size that a dim of these names has among the operands; not known where none is of them
/// alone. A dim of size 1 repeats, where another has a size, known or not.
static std::optional<Dim> sizeOfNames(SizeAlgebra &sizes, CustomOp op, const RuleText &rule,
                                      ArrayRef<std::string> names) {
  std::optional<Dim> found;
  for (auto [operand, dims] : llvm::zip_equal(op.getOperands(), rule.operands)) {
    SmallVector<Dim> known = sizes.sizesOf(operand);
    for (auto [size, dim] : llvm::zip_equal(known, dims)) {
      if (ArrayRef(dim.names) != names)
        continue;
      Dim here = size;
      if (const std::optional<TextWindow> &window = dim.window)
        here = sizes.asSize(sizes.ceilDiv(sizes.add(size, 1 - window->extent()), window->stride));
      bool isLess = !found || found->is(1) || (!found->number() && here.number() && !here.is(1));
      if (isLess)
        found = here;
    }
  }
  return found;
}

FailureOr<SmallVector<SmallVector<Dim>>> CustomOp::inferResultSizes(SizeAlgebra &sizes) {
  RuleText rule = ruleOf(*this);
  SmallVector<SmallVector<Dim>> results;
  for (auto [result, dims] : llvm::zip_equal(getResults(), rule.results)) {
    SmallVector<Dim> &shape = results.emplace_back();
    for (auto [known, dim] : llvm::zip_equal(shapeOf(result), dims)) {
      // What no operand has is as the type says.
      Dim size = known;
      if (ShapedType::isDynamic(known)) {
        std::optional<Dim> whole = sizeOfNames(sizes, *this, rule, dim.names);
        size = whole.value_or(Dim(1));
        for (size_t i = 0; !whole && i < dim.names.size(); ++i)
          size = sizes.mul(size, sizeOfNames(sizes, *this, rule, dim.names[i]).value_or(Dim()));
      }
      shape.push_back(size);
    }
  }
  return results;
}

LogicalResult CustomOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  return reifyShapes(*this, builder, shapes);
}

} // namespace shardc::aten
