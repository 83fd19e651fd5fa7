// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/Localizer.h"

#include "passes/localize/RemadeBorders.h"

#include "dialects/aten/BuiltSizes.h"
#include "dialects/interfaces/IdentityOpInterface.h"
#include "passes/localize/RedistributeSteps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

Type shardc::getLocalType(Type placed) {
  auto type = dyn_cast<RankedTensorType>(placed);
  LayoutAttr layout = getLayout(placed);
  if (!type || !layout)
    return placed;
  SmallVector<int64_t> shape(type.getShape());
  for (auto [dim, size] : llvm::enumerate(shape)) {
    DimSplit split = layout.getValue().splitOfDim(static_cast<int64_t>(dim));
    if (split.empty() || ShapedType::isDynamic(size))
      continue;
    std::vector<int64_t> extents = split.distinctExtents(size, split.axes.size());
    size = extents.size() == 1 ? extents.front() : ShapedType::kDynamic;
  }
  return RankedTensorType::get(shape, type.getElementType());
}

Localizer::Localizer(const GlobalSizes &sizes, const IRMapping &locals)
    : sizes(sizes), locals(locals), remade(std::make_unique<RemadeBorders>()) {}
Localizer::~Localizer() = default;

void Localizer::enter(Operation *newOp) {
  missingSize = false;
  turnTo(newOp);
}

void Localizer::turnTo(Operation *newOp) {
  op = newOp;
  mesh = MeshAttr();
  auto look = [&](Type type) {
    if (LayoutAttr layout = getLayout(type); layout && !mesh)
      mesh = layout.getMesh();
  };
  llvm::for_each(op->getOperandTypes(), look);
  llvm::for_each(op->getResultTypes(), look);
}

static const Layout *layoutOf(Type type) {
  LayoutAttr layout = getLayout(type);
  return layout ? &layout.getValue() : nullptr;
}

static RankedTensorType withoutLayout(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? RankedTensorType::get(tensor.getShape(), tensor.getElementType()) : tensor;
}

const Layout *Localizer::operandLayout(unsigned operand) const {
  return layoutOf(op->getOperand(operand).getType());
}
const Layout *Localizer::resultLayout(unsigned result) const {
  return layoutOf(op->getResult(result).getType());
}
RankedTensorType Localizer::globalOperandType(unsigned operand) const {
  return withoutLayout(op->getOperand(operand).getType());
}
RankedTensorType Localizer::globalResultType(unsigned result) const {
  return withoutLayout(op->getResult(result).getType());
}
RankedTensorType Localizer::localResultType(unsigned result) const {
  return cast<RankedTensorType>(getLocalType(op->getResult(result).getType()));
}

LocalIndices Localizer::indices(OpBuilder &builder) const {
  return LocalIndices(builder, op->getLoc(), mesh);
}

Value Localizer::axisIndex(OpBuilder &builder, unsigned meshAxis) {
  return indices(builder).axisIndex(meshAxis);
}

static GlobalSize sizeFrom(MLIRContext *context, RankedTensorType type, int64_t dim, Value size) {
  if (size)
    return {SizeAttr(), size};
  return {SizeAttr::get(context, type.getDimSize(dim)), Value()};
}

Value Localizer::localExtent(OpBuilder &builder, const Layout &layout, RankedTensorType type,
                             int64_t dim, Value size) {
  return indices(builder).extent(sizeFrom(builder.getContext(), type, dim, size),
                                 layout.splitOfDim(dim));
}

Value Localizer::localOffset(OpBuilder &builder, const Layout &layout, RankedTensorType type,
                             int64_t dim, Value size) {
  return indices(builder).offset(sizeFrom(builder.getContext(), type, dim, size),
                                 layout.splitOfDim(dim));
}

Value Localizer::allReduce(OpBuilder &builder, Value value, ArrayRef<unsigned> meshAxes,
                           Reduction reduction) {
  ++numInner;
  return emitAllReduce(indices(builder), value, meshAxes, reduction);
}

Value Localizer::allGather(OpBuilder &builder, Value value, const Layout &layout,
                           RankedTensorType type, int64_t dim, ArrayRef<unsigned> meshAxes) {
  ++numInner;
  return emitAllGather(indices(builder), value, sizeFrom(builder.getContext(), type, dim, Value()),
                       layout.splitOfDim(dim), meshAxes.size(), dim);
}

/// The sizes of an op's results by arithmetic on the global sizes of its operands.
class Localizer::BuiltGlobalSizes final : public aten::BuiltSizes {
public:
  BuiltGlobalSizes(Localizer &localizer, OpBuilder &builder)
      : BuiltSizes(builder, localizer.op->getLoc()), localizer(localizer), builder(builder) {}

  SmallVector<Dim> sizesOf(Value tensor) override {
    SmallVector<Dim> sizes;
    for (int64_t dim = 0, e = cast<RankedTensorType>(tensor.getType()).getRank(); dim < e; ++dim) {
      std::optional<GlobalSize> size = localizer.findSize(builder, tensor, dim);
      sizes.push_back(size ? of(getAsOpFoldResult(localizer.indices(builder).global(*size)))
                           : Dim());
    }
    return sizes;
  }
  Dim valueOf(Value index) override {
    return localizer.locals.contains(index) ? of(localizer.locals.lookup(index)) : Dim();
  }

private:
  Localizer &localizer;
  OpBuilder &builder;
};

/// The index value of a size that no expression is known of: the placed program's own, the size
/// of the local tensor where that is the whole dim, or what follows from the sizes of operands.
std::optional<GlobalSize> Localizer::findSize(OpBuilder &builder, Value placed, int64_t dim) {
  GlobalSizes::Known known = sizes.of(placed, dim);
  if (known.size)
    return GlobalSize{known.size, Value()};
  if (known.index && locals.contains(known.index))
    return GlobalSize{SizeAttr(), locals.lookup(known.index)};
  const Layout *layout = layoutOf(placed.getType());
  if (layout && layout->splitOfDim(dim).empty() && locals.contains(placed))
    return GlobalSize{SizeAttr(),
                      aten::SymSizeOp::create(builder, op->getLoc(), builder.getIndexType(),
                                              locals.lookup(placed), dim)};
  if (auto built = builtSizes.find({placed, dim}); built != builtSizes.end())
    return built->second ? std::optional(GlobalSize{SizeAttr(), built->second}) : std::nullopt;
  std::optional<GlobalSize> size = buildSize(builder, placed, dim);
  // What is built in a region is not there behind it.
  if (isa_and_nonnull<FunctionOpInterface>(builder.getInsertionBlock()->getParentOp()))
    builtSizes[{placed, dim}] = size ? indices(builder).global(*size) : Value();
  return size;
}

std::optional<GlobalSize> Localizer::buildSize(OpBuilder &builder, Value placed, int64_t dim) {
  if (auto identity = placed.getDefiningOp<IdentityOpInterface>())
    return findSize(builder, identity.getIdentitySource(), dim);
  auto sized = placed.getDefiningOp<ResultSizesOpInterface>();
  if (!sized)
    return std::nullopt;
  BuiltGlobalSizes algebra(*this, builder);
  auto results = sized.inferResultSizes(algebra);
  if (failed(results))
    return std::nullopt;
  Dim size = (*results)[cast<OpResult>(placed).getResultNumber()][dim];
  if (!size.isKnown())
    return std::nullopt;
  return GlobalSize{SizeAttr(), algebra.value(size)};
}

GlobalSize Localizer::sizeOf(OpBuilder &builder, Value placed, int64_t dim) {
  if (std::optional<GlobalSize> size = findSize(builder, placed, dim))
    return *size;
  if (!missingSize)
    op->emitOpError("cannot be localised: the global size of dim ")
        << dim << " of " << placed.getType()
        << " is not known; name it in 'dist.sizes' of an argument";
  missingSize = true;
  return {SizeAttr::get(builder.getContext(), 0), Value()};
}

GlobalSize Localizer::operandSize(OpBuilder &builder, unsigned operand, int64_t dim) {
  return sizeOf(builder, op->getOperand(operand), dim);
}
GlobalSize Localizer::resultSize(OpBuilder &builder, unsigned result, int64_t dim) {
  return sizeOf(builder, op->getResult(result), dim);
}

SplitDim Localizer::operandDim(unsigned operand, int64_t dim) const {
  return {globalOperandType(operand).getDimSize(dim), operandLayout(operand)->splitOfDim(dim)};
}
SplitDim Localizer::resultDim(unsigned result, int64_t dim) const {
  return {globalResultType(result).getDimSize(dim), resultLayout(result)->splitOfDim(dim)};
}

SmallVector<unsigned> Localizer::operandAxes(unsigned operand, ArrayRef<int64_t> dims) const {
  SmallVector<unsigned> axes;
  const Layout *layout = operandLayout(operand);
  for (unsigned axis = 0; layout && axis < layout->placements.size(); ++axis)
    if (layout->placements[axis].isShard() &&
        llvm::is_contained(dims, layout->placements[axis].dim))
      axes.push_back(axis);
  return axes;
}

SmallVector<OpFoldResult> Localizer::localSizes(OpBuilder &builder, unsigned result) {
  return localSizesOf(builder, op->getResult(result));
}
SmallVector<OpFoldResult> Localizer::operandSizes(OpBuilder &builder, unsigned operand) {
  return localSizesOf(builder, op->getOperand(operand));
}

SmallVector<OpFoldResult> Localizer::localSizesOf(OpBuilder &builder, Value placed) {
  auto local = cast<RankedTensorType>(getLocalType(placed.getType()));
  const Layout *layout = layoutOf(placed.getType());
  SmallVector<OpFoldResult> result;
  for (auto [i, size] : llvm::enumerate(local.getShape())) {
    auto dim = static_cast<int64_t>(i);
    result.push_back(ShapedType::isDynamic(size)
                         ? getAsOpFoldResult(indices(builder).extent(sizeOf(builder, placed, dim),
                                                                     layout->splitOfDim(dim)))
                         : OpFoldResult(builder.getIndexAttr(size)));
  }
  return result;
}

OpFoldResult Localizer::globalCount(OpBuilder &builder, unsigned operand, ArrayRef<int64_t> dims) {
  int64_t fixed = 1;
  Value dynamic;
  for (int64_t dim : dims) {
    GlobalSize size = operandSize(builder, operand, dim);
    if (size.fixed() != kDynamic) {
      fixed *= size.fixed();
      continue;
    }
    Value value = indices(builder).global(size);
    dynamic = dynamic ? indices(builder).mul(dynamic, value) : value;
  }
  if (!dynamic)
    return builder.getIndexAttr(fixed);
  return indices(builder).mul(dynamic, indices(builder).constant(fixed));
}

InFlightDiagnostic Localizer::refuse() const {
  InFlightDiagnostic diagnostic = op->emitOpError("cannot be localised: operands");
  auto list = [&](TypeRange types) {
    llvm::interleaveComma(types, diagnostic, [&](Type type) {
      const Layout *layout = layoutOf(type);
      diagnostic << (layout ? layout->str() : std::string("-"));
    });
  };
  diagnostic << " ";
  list(op->getOperandTypes());
  diagnostic << ", results ";
  list(op->getResultTypes());
  diagnostic << ": ";
  return diagnostic;
}
