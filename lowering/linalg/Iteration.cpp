// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/linalg/Iteration.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/Dist.h"
#include "lowering/linalg/Elementwise.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shardc {
namespace {

using Access = Iteration::Access;

Access identity(size_t rank, int first = 0) {
  Access access;
  for (size_t i = 0; i < rank; ++i)
    access.loops.push_back(first + static_cast<int>(i));
  return access;
}

/// Operand of a domain, aligned at its last dim (or at the loop `end`); dims of size 1 are
/// repeated.
Access broadcast(Value operand, ArrayRef<int64_t> loops) {
  Access access;
  auto type = dyn_cast<RankedTensorType>(operand.getType());
  if (!type)
    return access;
  int shift = static_cast<int>(loops.size()) - static_cast<int>(type.getRank());
  for (auto [position, size] : llvm::enumerate(type.getShape())) {
    int loop = shift + static_cast<int>(position);
    access.loops.push_back(size == 1 && loops[loop] != 1 ? kNoLoop : loop);
  }
  return access;
}

Iteration overResult(Operation *op) {
  Iteration it;
  it.loops = llvm::to_vector(aten::shapeOf(op->getResult(0)));
  it.whole.assign(it.loops.size(), false);
  it.result = identity(it.loops.size());
  return it;
}

Iteration elementwise(Operation *op) {
  Iteration it = overResult(op);
  for (Value operand : op->getOperands())
    it.operands.push_back(broadcast(operand, it.loops));
  return it;
}

/// Reads its first operand at computed positions.
Iteration computedPositions(Operation *op) {
  Iteration it = overResult(op);
  for (size_t i = 0; i < op->getNumOperands(); ++i) {
    it.operands.push_back({});
    it.operands.back().inMemory = true;
  }
  return it;
}

Iteration reduction(Operation *op, std::optional<ArrayRef<int64_t>> dims, bool keepdim) {
  Iteration it;
  it.loops = llvm::to_vector(aten::shapeOf(op->getOperand(0)));
  it.whole.assign(it.loops.size(), !dims || dims->empty());
  if (dims)
    for (int64_t dim : *dims)
      if (dim < static_cast<int64_t>(it.loops.size()))
        it.whole[dim] = true;
  it.operands.push_back(identity(it.loops.size()));
  for (auto [loop, reduced] : llvm::enumerate(it.whole))
    if (!reduced || keepdim)
      it.result.loops.push_back(reduced ? kNoLoop : static_cast<int>(loop));
  it.reduces = true;
  return it;
}

template <typename Op> Iteration argReduction(Op op) {
  SmallVector<int64_t> dims;
  if (op.getDim())
    dims.push_back(*op.getDim());
  return reduction(op, dims.empty() ? std::nullopt : std::optional<ArrayRef<int64_t>>(dims),
                   op.getKeepdim());
}

Iteration normalization(Operation *op, size_t firstWhole, size_t endWhole) {
  Iteration it = elementwise(op);
  for (size_t dim = firstWhole; dim < std::min(endWhole, it.loops.size()); ++dim)
    it.whole[dim] = true;
  it.reduces = true;
  return it;
}

template <typename Op> Iteration trailingNormalization(Op op) {
  size_t rank = aten::shapeOf(op.getInput()).size();
  return normalization(op, rank - op.getNormalizedShape().size(), rank);
}

/// The first operand elementwise, the others by its dim 1.
Iteration perChannel(Operation *op) {
  Iteration it = overResult(op);
  it.operands.push_back(identity(it.loops.size()));
  for (size_t i = 1; i < op->getNumOperands(); ++i)
    it.operands.push_back(identity(1, /*first=*/1));
  return it;
}

Iteration unsqueeze(aten::UnsqueezeOp op) {
  Iteration it = overResult(op);
  Access access;
  for (size_t loop = 0; loop < it.loops.size(); ++loop)
    if (loop != static_cast<size_t>(op.getDim()))
      access.loops.push_back(loop);
  it.operands.push_back(access);
  return it;
}

Iteration squeeze(aten::SqueezeOp op) {
  Iteration it = overResult(op);
  Access access;
  int loop = 0;
  for (size_t dim = 0; dim < aten::shapeOf(op.getSelf()).size(); ++dim)
    access.loops.push_back(llvm::is_contained(op.getDim(), static_cast<int64_t>(dim)) ? kNoLoop
                                                                                      : loop++);
  it.operands.push_back(access);
  return it;
}

bool isSplat(aten::ConstantOp op) {
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  return elements && elements.isSplat();
}

bool isFloatProduct(Operation *op) {
  Type element = aten::elementTypeOf(op->getResult(0));
  return element.isF32() || element.isF64() || element.isF16() || element.isBF16();
}

} // namespace

bool isFusibleView(Operation *op) {
  return isa<aten::UnsqueezeOp, aten::SqueezeOp, aten::ExpandOp, aten::CloneOp, aten::AliasOp>(op);
}

bool isCopyable(Operation *op) {
  while (op && isFusibleView(op))
    op = op->getOperand(0).getDefiningOp();
  return op && classify(op) == OpClass::Generator;
}

OpClass classify(Operation *op) {
  if (op->getDialect() && op->getDialect()->getNamespace() == "dist")
    return isa<dist::AxisIndexOp, dist::ExtentOp>(op) ? OpClass::Scalar : OpClass::Collective;
  if (!op->getDialect() || op->getDialect()->getNamespace() != "aten")
    return llvm::all_of(op->getResultTypes(), [](Type type) { return type.isIntOrIndexOrFloat(); })
               ? OpClass::Scalar
               : OpClass::Unsupported;
  if (isa<aten::SymSizeOp>(op))
    return OpClass::Scalar;
  if (auto constant = dyn_cast<aten::ConstantOp>(op))
    return isSplat(constant) ? OpClass::Generator : OpClass::View;
  if (isa<aten::ArangeOp>(op))
    return OpClass::Generator;
  if (isFusibleView(op) || isa<aten::ViewOp, aten::PermuteOp, aten::TransposeOp, aten::SliceOp,
                               aten::SelectOp, aten::SplitWithSizesOp>(op))
    return OpClass::View;
  if (isa<aten::LinearOp, aten::MatmulOp, aten::MmOp, aten::BmmOp, aten::AddmmOp, aten::BaddbmmOp>(
          op))
    return isFloatProduct(op) ? OpClass::Gemm : OpClass::Unsupported;
  if (isa<aten::ScaledDotProductAttentionOp>(op))
    return OpClass::Attention;
  if (isa<aten::CatOp, aten::StackOp>(op))
    return OpClass::Concat;
  return describeIteration(op) ? OpClass::Fusible : OpClass::Unsupported;
}

std::optional<Iteration> describeIteration(Operation *op) {
  if (ElementwiseTable::find(op))
    return elementwise(op);
  return llvm::TypeSwitch<Operation *, std::optional<Iteration>>(op)
      .Case<aten::SumOp, aten::ProdOp, aten::MeanOp, aten::AmaxOp, aten::AminOp, aten::AnyOp,
            aten::AllOp, aten::LogsumexpOp, aten::VarOp, aten::VectorNormOp>(
          [](auto op) { return reduction(op, op.getDim(), op.getKeepdim()); })
      .Case<aten::ArgmaxOp, aten::ArgminOp>([](auto op) { return argReduction(op); })
      .Case<aten::SoftmaxOp, aten::LogSoftmaxOp, aten::CumsumOp>([](auto op) {
        size_t dim = op.getDim();
        return normalization(op, dim, dim + 1);
      })
      .Case<aten::LayerNormOp, aten::RmsNormOp>([](auto op) { return trailingNormalization(op); })
      .Case<aten::EmbeddingOp, aten::GatherOp, aten::IndexSelectOp, aten::IndexOp, aten::FlipOp,
            aten::ConstantPadNdOp, aten::WindowsOp, aten::MaxPool2dOp, aten::AvgPool2dOp,
            aten::AdaptiveAvgPool2dOp>([](auto op) { return computedPositions(op); })
      .Case([](aten::BatchNormOp op) { return perChannel(op); })
      .Case<aten::TrilOp, aten::TriuOp, aten::ExpandOp, aten::ArangeOp>(
          [](auto op) { return elementwise(op); })
      .Case([](aten::UnsqueezeOp op) { return unsqueeze(op); })
      .Case([](aten::SqueezeOp op) { return squeeze(op); })
      .Case([](aten::ConstantOp op) -> std::optional<Iteration> {
        if (!isSplat(op))
          return std::nullopt;
        return overResult(op);
      })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace shardc
