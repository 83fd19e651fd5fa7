// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Inference.h"

#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;

namespace shardc::aten {

bool areCompatibleTypes(TypeRange lhs, TypeRange rhs) {
  if (lhs.size() != rhs.size())
    return false;
  for (auto [left, right] : llvm::zip(lhs, rhs)) {
    auto leftTensor = dyn_cast<RankedTensorType>(left),
         rightTensor = dyn_cast<RankedTensorType>(right);
    if (!leftTensor || !rightTensor) {
      if (left != right)
        return false;
      continue;
    }
    if (leftTensor.getElementType() != rightTensor.getElementType() ||
        failed(verifyCompatibleShape(leftTensor.getShape(), rightTensor.getShape())))
      return false;
  }
  return true;
}

bool areCompatible(ArrayRef<Dim> lhs, ArrayRef<Dim> rhs) {
  return lhs.size() == rhs.size() && llvm::all_of(llvm::zip(lhs, rhs), [](auto pair) {
           auto [left, right] = pair;
           return !left.number() || !right.number() || *left.number() == *right.number();
         });
}

LogicalResult Inference::result(ArrayRef<Dim> shape, Type elementType) {
  if (!TensorType::isValidElementType(elementType))
    return error(elementType, " is no element type");
  results.push_back({Shape(shape), elementType});
  return success();
}

void Inference::appendTypes(SmallVectorImpl<Type> &types) const {
  for (const Result &result : results) {
    if (!result.shape) {
      types.push_back(result.type);
      continue;
    }
    SmallVector<int64_t> shape;
    for (Dim size : *result.shape)
      shape.push_back(size.orDynamic());
    types.push_back(RankedTensorType::get(shape, result.type));
  }
}

SmallVector<Shape> Inference::resultSizes() const {
  return llvm::map_to_vector(results,
                             [](const Result &result) { return result.shape.value_or(Shape()); });
}

Shape Inference::given(ArrayRef<int64_t> values, ValueRange operands) {
  Shape shape;
  for (int64_t value : values) {
    bool isOperand = ShapedType::isDynamic(value) && !operands.empty();
    shape.push_back(given(value, isOperand ? operands.front() : Value()));
    if (isOperand)
      operands = operands.drop_front();
  }
  return shape;
}

LogicalResult Inference::checkDim(int64_t dim, int64_t rank, StringRef name) {
  int64_t bound = std::max<int64_t>(rank, 1);
  if (dim < 0 || dim >= bound)
    return error(name, " is ", dim, ", out of range for a tensor of ", rank, " dims");
  return success();
}

LogicalResult Inference::checkDims(ArrayRef<int64_t> dims, int64_t rank, StringRef name) {
  llvm::SmallBitVector seen(std::max<int64_t>(rank, 1));
  for (int64_t dim : dims) {
    if (failed(checkDim(dim, rank, name)))
      return failure();
    if (seen.test(dim))
      return error(name, " names dim ", dim, " twice");
    seen.set(dim);
  }
  return success();
}

LogicalResult Inference::checkDynamic(int64_t value, Value operand, StringRef name) {
  if (ShapedType::isDynamic(value) == static_cast<bool>(operand))
    return success();
  return error(name,
               operand ? " is both static and an operand" : " is dynamic, but has no operand");
}

LogicalResult Inference::checkDynamicList(ArrayRef<int64_t> values, ValueRange operands,
                                          StringRef name) {
  size_t dynamic = llvm::count_if(values, ShapedType::isDynamic);
  if (dynamic != operands.size())
    return error(name, " has ", dynamic, " dynamic entries but ", operands.size(),
                 " index operands");
  for (int64_t value : values)
    if (!ShapedType::isDynamic(value) && value < 0)
      return error(name, " has the negative entry ", value);
  return success();
}

FailureOr<Shape> Inference::broadcast(ArrayRef<ArrayRef<Dim>> shapes) {
  size_t rank = 0;
  for (ArrayRef<Dim> shape : shapes)
    rank = std::max(rank, shape.size());
  Shape result(rank, Dim(1));
  for (ArrayRef<Dim> shape : shapes) {
    for (size_t i = 0; i < shape.size(); ++i) {
      Dim &size = result[rank - 1 - i];
      Dim other = shape[shape.size() - 1 - i];
      if (other.is(1))
        continue;
      // A size that is no number beside one that is not 1 must be that size, or 1.
      if (size.is(1) || !size.isKnown() || (!size.number() && other.number()))
        size = other;
      else if (other.number() && *size.number() != *other.number())
        return error("operands do not broadcast: sizes ", *size.number(), " and ", *other.number(),
                     " at dim ", rank - 1 - i, " of the result");
    }
  }
  return result;
}

FailureOr<Shape> Inference::broadcast(ValueRange tensors) {
  SmallVector<Shape> shapes = llvm::map_to_vector(tensors, [&](Value v) { return sizesOf(v); });
  return broadcast(SmallVector<ArrayRef<Dim>>(shapes.begin(), shapes.end()));
}

FailureOr<Dim> Inference::same(Dim lhs, Dim rhs, StringRef what) {
  if (lhs.number() && rhs.number() && *lhs.number() != *rhs.number())
    return error(what, " differ: ", *lhs.number(), " and ", *rhs.number());
  return lhs.number() || (lhs.isKnown() && !rhs.number()) ? lhs : rhs;
}

FailureOr<Type> Inference::promote(ValueRange tensors) {
  SmallVector<RankedTensorType> types;
  for (Value tensor : tensors)
    types.push_back(typeOf(tensor));
  if (Type type = resultElementType(types))
    return type;
  return error("element types of operands have no common type in PyTorch's promotion rules");
}

FailureOr<Type> Inference::sameElementType(ValueRange tensors) {
  Type type = elementTypeOf(tensors.front());
  for (Value tensor : tensors.drop_front())
    if (elementTypeOf(tensor) != type)
      return error("operands have element types ", type, " and ", elementTypeOf(tensor),
                   "; this op does not promote");
  return type;
}

LogicalResult inferElementwise(Inference &inference, ValueRange operands) {
  FailureOr<Shape> shape = inference.broadcast(operands);
  FailureOr<Type> type = inference.promote(operands);
  if (failed(shape) || failed(type))
    return failure();
  return inference.result(*shape, *type);
}

LogicalResult inferElementwiseFloat(Inference &inference, ValueRange operands) {
  FailureOr<Shape> shape = inference.broadcast(operands);
  FailureOr<Type> type = inference.promote(operands);
  if (failed(shape) || failed(type))
    return failure();
  return inference.result(*shape, toFloatType(*type));
}

LogicalResult inferElementwiseBool(Inference &inference, ValueRange operands) {
  FailureOr<Shape> shape = inference.broadcast(operands);
  if (failed(shape))
    return failure();
  return inference.result(*shape, IntegerType::get(inference.getContext(), 1));
}

Type sumType(Type type, std::optional<Type> dtype) {
  if (dtype)
    return *dtype;
  return isa<FloatType>(type) ? type : IntegerType::get(type.getContext(), 64);
}

/// `present` with what `inferred` knows more; null where they contradict each other.
static Type refine(Type present, Type inferred) {
  auto tensor = dyn_cast<RankedTensorType>(present);
  if (!tensor || !isa<RankedTensorType>(inferred))
    return present;
  SmallVector<int64_t> shape(tensor.getShape());
  for (auto [size, known] : llvm::zip(shape, cast<RankedTensorType>(inferred).getShape()))
    if (ShapedType::isDynamic(size))
      size = known;
  return RankedTensorType::get(shape, tensor.getElementType(), tensor.getEncoding());
}

/// Sizes alone, of an op whose element types do not follow from its operands.
static LogicalResult inferAndSetSizes(ResultSizesOpInterface op) {
  StaticSizes sizes;
  FailureOr<SmallVector<SmallVector<Dim>>> shapes = op.inferResultSizes(sizes);
  if (failed(shapes))
    return failure();
  for (auto [result, shape] : llvm::zip_equal(op->getResults(), *shapes))
    if (auto type = dyn_cast<RankedTensorType>(result.getType())) {
      SmallVector<int64_t> fixed =
          llvm::map_to_vector(shape, [](const Dim &dim) { return dim.orDynamic(); });
      result.setType(refine(type, RankedTensorType::get(fixed, type.getElementType())));
    }
  return success();
}

LogicalResult inferAndSetTypes(Operation *op) {
  auto inferrable = dyn_cast<InferTypeOpInterface>(op);
  if (!inferrable) {
    auto sized = dyn_cast<ResultSizesOpInterface>(op);
    return sized ? inferAndSetSizes(sized) : success();
  }
  SmallVector<Type> inferred;
  if (failed(inferrable.inferReturnTypes(op->getContext(), op->getLoc(), op->getOperands(),
                                         op->getDiscardableAttrDictionary(),
                                         op->getPropertiesStorage(), op->getRegions(), inferred)))
    return failure();
  if (!areCompatibleTypes(op->getResultTypes(), inferred))
    return op->emitOpError("has results of types ")
           << op->getResultTypes() << ", but its operands give " << inferred;
  for (auto [result, type] : llvm::zip(op->getResults(), inferred))
    result.setType(refine(result.getType(), type));
  return success();
}

} // namespace shardc::aten
