// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/SizeInference.h"

#include "dialects/aten/SliceRange.h"
#include "dialects/interfaces/OpInterfaces.h"

using namespace mlir;

namespace shardc::memory {
namespace {

/// Sizes as index values of the host program.
class HostSizes final : public SizeAlgebra {
public:
  HostSizes(const IndexMath &math, SizesOf sizesOfTensor, IndexOf indexOf)
      : math(math), sizesOfTensor(sizesOfTensor), indexOf(indexOf) {}
  /// For arithmetic alone.
  explicit HostSizes(const IndexMath &math) : math(math) {}

  SmallVector<Dim> sizesOf(Value tensor) override {
    return llvm::map_to_vector(sizesOfTensor(tensor), [&](Size size) { return of(size); });
  }
  Dim valueOf(Value index) override { return of(indexOf(index)); }

  Dim of(Size size) {
    if (std::optional<int64_t> constant = getConstantIntValue(size))
      return *constant;
    sizes.push_back(size);
    return Dim::entry(sizes.size() - 1);
  }
  /// Null for what is not known.
  Size get(Dim dim) const {
    if (dim.number())
      return math.constant(*dim.number());
    return dim.isKnown() ? sizes[*dim.entry()] : Size();
  }

protected:
  Dim compute(Operation operation, Dim a, Dim b) override {
    Size lhs = get(a), rhs = get(b);
    switch (operation) {
    case Operation::Add:
      return of(math.add(lhs, rhs));
    case Operation::Sub:
      return of(math.sub(lhs, rhs));
    case Operation::Mul:
      return of(math.mul(lhs, rhs));
    case Operation::CeilDiv:
      return of(math.ceilDiv(lhs, *b.number()));
    case Operation::Min:
      return of(math.min(lhs, rhs));
    case Operation::Max:
    case Operation::AsSize: // `b` is 0
      return of(math.max(lhs, rhs));
    case Operation::FromEnd:
      return of(math.fromEnd(lhs, rhs));
    }
    llvm_unreachable("all operations are listed");
  }

private:
  const IndexMath &math;
  SizesOf sizesOfTensor;
  IndexOf indexOf;
  SmallVector<Size> sizes;
};

} // namespace

SliceRange sliceRange(const IndexMath &math, Size start, Size end, int64_t step, Size size) {
  HostSizes sizes(math);
  aten::SliceRange range =
      aten::sliceRange(sizes, sizes.of(start), sizes.of(end), step, sizes.of(size));
  return {sizes.get(range.first), sizes.get(range.count)};
}

FailureOr<Sizes> inferSizes(const IndexMath &math, Operation *op, unsigned result, SizesOf sizesOf,
                            IndexOf index) {
  auto type = cast<RankedTensorType>(op->getResult(result).getType());
  if (type.hasStaticShape())
    return getAsIndexOpFoldResult(op->getContext(), type.getShape());
  HostSizes host(math, sizesOf, index);
  Sizes sizes;
  if (auto sized = dyn_cast<ResultSizesOpInterface>(op))
    if (FailureOr<SmallVector<SmallVector<Dim>>> all = sized.inferResultSizes(host); succeeded(all))
      sizes = llvm::map_to_vector((*all)[result], [&](Dim dim) { return host.get(dim); });
  // What the type says is certain, whatever else was found.
  sizes.resize(type.getRank());
  for (auto [size, known] : llvm::zip_equal(sizes, type.getShape()))
    if (!ShapedType::isDynamic(known))
      size = math.constant(known);
  if (llvm::all_of(sizes, [](Size size) { return static_cast<bool>(size); }))
    return sizes;
  op->emitOpError("has a result whose sizes do not follow from its operands: ") << type;
  return failure();
}

} // namespace shardc::memory
