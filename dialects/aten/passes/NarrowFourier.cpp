// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/EraseUnused.h"
#include "dialects/aten/FourierProduct.h"
#include "dialects/aten/KeptPositions.h"
#include "dialects/aten/passes/Passes.h"

#include "dialects/aten/Aten.h"

using namespace mlir;

namespace shardc::aten {

#define GEN_PASS_DEF_ATENNARROWFOURIER
#include "dialects/aten/passes/Passes.h.inc"

namespace {

/// Of more parts, to put them together would cost what the transform saves.
constexpr size_t kMostParts = 8;

/// The transform of some positions of another dim, and zeros at the others.
Operation *narrow(const FourierTransform &transform, int64_t dim, const PositionSet &kept) {
  Operation *op = transform.op;
  OpBuilder builder(op);
  Value part = takePositions(builder, op->getLoc(), transform.self(), dim, kept);
  Operation *copy = builder.clone(*op);
  copy->setOperand(0, part);
  RankedTensorType type = typeOf(transform.result());
  SmallVector<int64_t> shape(type.getShape());
  int64_t size = shape[dim];
  shape[dim] = kept.count();
  copy->getResult(0).setType(
      RankedTensorType::get(shape, type.getElementType(), type.getEncoding()));
  Value whole = spreadPositions(builder, op->getLoc(), copy->getResult(0), dim, kept, size);
  transform.result().replaceAllUsesWith(whole);
  op->erase();
  forwardSlices(whole);
  return copy;
}

/// Zeros along the transformed dim stand right before the transform, in whatever order the program
/// put other elements among them.
void gatherZeros(const FourierTransform &transform, const PositionSet &filled) {
  OpBuilder builder(transform.op);
  Location loc = transform.op->getLoc();
  Value part = takePositions(builder, loc, transform.self(), transform.dim, filled);
  transform.op->setOperand(
      0, spreadPositions(builder, loc, part, transform.dim, filled, transform.sizeBefore()));
}

struct NarrowFourier : impl::AtenNarrowFourierBase<NarrowFourier> {
  void runOnOperation() override {
    SmallVector<Operation *> transforms;
    getOperation().walk([&](Operation *op) {
      if (FourierTransform::of(op))
        transforms.push_back(op);
    });
    for (Operation *op : transforms)
      narrowDims(op);
    if (!transforms.empty())
      eraseUnused(getOperation());
  }

  void narrowDims(Operation *op) {
    FourierTransform transform = *FourierTransform::of(op);
    bool isNarrowed = false;
    for (int64_t dim = 0, rank = transform.rank(); dim < rank; ++dim) {
      int64_t size = shapeOf(transform.self())[dim];
      if (ShapedType::isDynamic(size))
        continue;
      KeptPositions positions;
      if (dim == transform.dim) {
        PositionSet filled = positions.filled(transform.self(), dim);
        if (!filled.empty() && !filled.isAll(size) && filled.intervals().size() <= kMostParts)
          gatherZeros(transform, filled);
        continue;
      }
      PositionSet kept = positions.read(transform.result(), dim)
                             .intersect(positions.filled(transform.self(), dim));
      if (kept.empty() || kept.isAll(size) || kept.intervals().size() > kMostParts)
        continue;
      transform = *FourierTransform::of(narrow(transform, dim, kept));
      isNarrowed = true;
    }
    narrowed += isNarrowed;
  }
};

} // namespace
} // namespace shardc::aten
