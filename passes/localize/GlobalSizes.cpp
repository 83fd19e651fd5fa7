// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/GlobalSizes.h"

using namespace mlir;
using namespace shardc;

GlobalSizes::GlobalSizes(func::FuncOp) {}

GlobalSize GlobalSizes::of(Value placed, int64_t dim) const {
  int64_t size = cast<RankedTensorType>(placed.getType()).getDimSize(dim);
  if (!ShapedType::isDynamic(size))
    return {dist::SizeAttr::get(placed.getContext(), size), Value()};
  auto found = dynamic.find(placed);
  return {found == dynamic.end() ? dist::SizeAttr() : found->second[dim], Value()};
}
