// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/aten/FourierProduct.h"

#include "dialects/aten/BuiltSizes.h"
#include "dialects/aten/Emitter.h"
#include "dialects/aten/Fourier.h"
#include "dialects/aten/Pairs.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shardc::aten {

int64_t FourierTransform::rank() const {
  return typeOf(self()).getRank() - (from == Parts::Both ? 1 : 0);
}
int64_t FourierTransform::sizeBefore() const { return shapeOf(self())[dim]; }
int64_t FourierTransform::sizeAfter() const { return shapeOf(result())[dim]; }

std::optional<FourierTransform> FourierTransform::of(Operation *op) {
  auto make = [](auto op, Parts from, Parts to, bool forward, int64_t length) {
    return FourierTransform{op,
                            static_cast<int64_t>(op.getDim()),
                            static_cast<int64_t>(op.getNormalization()),
                            from,
                            to,
                            forward,
                            length};
  };
  return llvm::TypeSwitch<Operation *, std::optional<FourierTransform>>(op)
      .Case([&](FftC2cOp op) {
        return make(op, Parts::Both, Parts::Both, op.getForward(),
                    shapeOf(op.getSelf())[op.getDim()]);
      })
      .Case([&](FftR2cOp op) {
        return make(op, Parts::Real, Parts::Both, true, shapeOf(op.getSelf())[op.getDim()]);
      })
      .Case([&](FftC2rOp op) {
        return make(op, Parts::Both, Parts::Real, false, shapeOf(op.getResult())[op.getDim()]);
      })
      .Default([](Operation *) { return std::nullopt; });
}

Value moveDim(OpBuilder &builder, Location loc, Value x, int64_t from, int64_t to) {
  if (from == to)
    return x;
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, typeOf(x).getRank()));
  dims.erase(dims.begin() + from);
  dims.insert(dims.begin() + to, from);
  return PermuteOp::create(builder, loc, x, dims);
}

static int64_t partsOf(Parts parts) { return parts == Parts::Both ? 2 : 1; }

double sizeOfPart(const FourierTransform &transform, const PositionSet &from,
                  const PositionSet &to) {
  return double(from.count() * partsOf(transform.from)) *
         double(to.count() * partsOf(transform.to));
}

/// Rows of a constant are what a product makes: columns of the matrix.
static Value transposedConstant(OpBuilder &builder, Location loc, ArrayRef<double> matrix,
                                int64_t rows, int64_t columns, Type type) {
  SmallVector<double> weight(matrix.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      weight[j * rows + i] = matrix[i * columns + j];
  auto tensor = RankedTensorType::get({columns, rows}, type);
  DenseElementsAttr elements =
      type.isF64()
          ? DenseElementsAttr::get(tensor, ArrayRef<double>(weight))
          : DenseElementsAttr::get(
                tensor, ArrayRef(llvm::map_to_vector(weight, [](double x) { return float(x); })));
  return ConstantOp::create(builder, loc, tensor, elements);
}

Value partOfTransform(OpBuilder &builder, const FourierTransform &transform,
                      const PositionSet &from, const PositionSet &to) {
  Location loc = transform.op->getLoc();
  Emitter emit(builder, loc);
  BuiltSizes sizes(builder, loc);
  double scale = fourierScale(transform.normalization, transform.length);
  SmallVector<int64_t> rows = from.positions(), columns = to.positions();
  std::vector<double> matrix =
      transform.to == Parts::Real
          ? partOfRealInverse(transform.length, rows, columns, scale)
          : partOfFourierMatrix(transform.length, rows, columns, transform.forward, scale,
                                transform.from, transform.to);
  int64_t before = partsOf(transform.from) * from.count(),
          after = partsOf(transform.to) * to.count();
  Value x = takePositions(builder, loc, transform.self(), transform.dim, from);
  x = moveDim(builder, loc, x, transform.dim, transform.rank() - 1);
  SmallVector<OpFoldResult> leading = llvm::map_to_vector(
      ArrayRef(sizes.sizesOf(x)).take_front(static_cast<size_t>(transform.rank() - 1)),
      [&](Dim size) { return sizes.get(size); });
  auto viewed = [&](Value value, ArrayRef<int64_t> last) {
    SmallVector<OpFoldResult> shape = leading;
    for (int64_t size : last)
      shape.push_back(builder.getIndexAttr(size));
    return emit.view(value, shape);
  };
  if (transform.from == Parts::Both)
    x = viewed(x, {before});
  Value constant = transposedConstant(builder, loc, matrix, before, after, elementTypeOf(x));
  Value product = LinearOp::create(builder, loc, x, constant, Value());
  product.getDefiningOp()->setAttr(kOfComplexAttr, builder.getUnitAttr());
  if (transform.to == Parts::Both)
    product = viewed(product, {to.count(), 2});
  return moveDim(builder, loc, product, transform.rank() - 1, transform.dim);
}

} // namespace shardc::aten
