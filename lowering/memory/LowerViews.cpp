// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Views: no code, other strides. A reshape that strides cannot express copies first.

#include "lowering/memory/HostProgram.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/Ordering.h"
#include "lowering/linalg/ScalarBuilder.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shardc::memory {
namespace {

/// A table of numbers: constant data of the artifact.
std::string makeGlobal(HostProgram &program, aten::ConstantOp op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  Type element = storageType(type.getElementType());
  auto elements = cast<DenseElementsAttr>(op.getValue());
  auto tensorType = RankedTensorType::get(type.getShape(), element);
  if (type.getElementType().isInteger(1))
    elements = elements.mapValues(element, [](const APInt &bit) { return bit.zext(8); });
  else if (isa<IntegerType>(element))
    elements = DenseElementsAttr::getFromRawBuffer(tensorType, elements.getRawData());
  auto memrefType = MemRefType::get(type.getShape(), element);
  OpBuilder::InsertionGuard guard(program.builder);
  program.builder.setInsertionPoint(program.source);
  auto global = memref::GlobalOp::create(
      program.builder, op.getLoc(), "constant", program.builder.getStringAttr("private"),
      memrefType, elements.reshape(tensorType), /*constant=*/true, IntegerAttr());
  global->remove();
  program.symbols.insert(global);
  return global.getSymName().str();
}

StridedView constantView(HostProgram &program, aten::ConstantOp op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  auto memrefType = MemRefType::get(type.getShape(), storageType(type.getElementType()));
  Value memory = memref::GetGlobalOp::create(program.builder, op.getLoc(), memrefType,
                                             makeGlobal(program, op));
  Sizes sizes = getAsIndexOpFoldResult(op.getContext(), type.getShape());
  return denseView(program.math(op.getLoc()), memory, sizes);
}

struct ViewLowering {
  HostProgram &program;
  Operation *op;

  Size mixed(Value dynamic, int64_t fixed) {
    return dynamic ? Size(program.scalars.lookup(dynamic))
                   : program.math(op->getLoc()).constant(fixed);
  }

  void set(unsigned result, StridedView view) {
    program.views[op->getResult(result)] = std::move(view);
  }

  LogicalResult run() {
    IndexMath math = program.math(op->getLoc());
    if (auto constant = dyn_cast<aten::ConstantOp>(op)) {
      set(0, constantView(program, constant));
      return success();
    }
    StridedView self = program.view(op->getOperand(0));
    FailureOr<Sizes> sizes = program.resultSizes(op, 0);
    if (failed(sizes))
      return failure();
    return llvm::TypeSwitch<Operation *, LogicalResult>(op)
        .Case<aten::CloneOp, aten::AliasOp, dist::AfterOp>([&](Operation *) {
          set(0, self);
          return success();
        })
        .Case([&](aten::ViewOp) {
          set(0, program.reshaped(op->getLoc(), self, *sizes));
          return success();
        })
        .Case([&](aten::ExpandOp) {
          set(0, broadcast(math, self, *sizes));
          return success();
        })
        .Case([&](aten::PermuteOp permuteOp) {
          set(0, permute(self, permuteOp.getDims()));
          return success();
        })
        .Case([&](aten::TransposeOp transpose) {
          SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, self.rank()));
          if (!dims.empty())
            std::swap(dims[transpose.getDim0()], dims[transpose.getDim1()]);
          set(0, permute(self, dims));
          return success();
        })
        .Case([&](aten::UnsqueezeOp unsqueeze) {
          set(0, insertDim(math, self, unsqueeze.getDim()));
          return success();
        })
        .Case([&](aten::SqueezeOp squeeze) {
          StridedView view = self;
          SmallVector<int64_t> dims(squeeze.getDim());
          llvm::sort(dims, std::greater<>());
          for (int64_t dim : dims)
            if (dim < static_cast<int64_t>(view.rank()))
              view = dropDim(view, dim);
          set(0, view);
          return success();
        })
        .Case([&](aten::SliceOp sliceOp) {
          Size size = self.sizes[sliceOp.getDim()];
          SliceRange range =
              sliceRange(math, mixed(sliceOp.getStart(), sliceOp.getStaticStart()),
                         mixed(sliceOp.getEnd(), sliceOp.getStaticEnd()), sliceOp.getStep(), size);
          set(0, slice(math, self, sliceOp.getDim(), range.start, (*sizes)[sliceOp.getDim()],
                       sliceOp.getStep()));
          return success();
        })
        .Case([&](aten::SelectOp selectOp) {
          Size at = math.fromEnd(mixed(selectOp.getIndex(), selectOp.getStaticIndex()),
                                 self.sizes[selectOp.getDim()]);
          set(0, select(math, self, selectOp.getDim(), at));
          return success();
        })
        .Case([&](aten::SplitWithSizesOp split) { return runSplit(split, self); })
        .Default([&](Operation *) { return op->emitOpError("is no view"); });
  }

  LogicalResult runSplit(aten::SplitWithSizesOp split, const StridedView &self) {
    IndexMath math = program.math(op->getLoc());
    Size start = math.constant(0);
    for (unsigned part = 0; part < op->getNumResults(); ++part) {
      FailureOr<Sizes> sizes = program.resultSizes(op, part);
      if (failed(sizes))
        return failure();
      Size count = (*sizes)[split.getDim()];
      set(part, slice(math, self, split.getDim(), start, count, 1));
      start = math.add(start, count);
    }
    return success();
  }
};

} // namespace

LogicalResult lowerView(HostProgram &program, Operation *op) {
  return ViewLowering{program, op}.run();
}

} // namespace shardc::memory
