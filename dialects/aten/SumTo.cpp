// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/aten/SumTo.h"

using namespace mlir;

Value shardc::sumTo(Emitter &emit, Value x, RankedTensorType want) {
  int64_t extra = aten::typeOf(x).getRank() - want.getRank();
  if (extra > 0)
    x = emit.sum(x, llvm::to_vector(llvm::seq<int64_t>(0, extra)), /*keepdim=*/false);
  SmallVector<int64_t> repeated;
  for (auto [dim, sizes] : llvm::enumerate(llvm::zip(want.getShape(), aten::shapeOf(x))))
    if (std::get<0>(sizes) == 1 && std::get<1>(sizes) != 1)
      repeated.push_back(static_cast<int64_t>(dim));
  if (!repeated.empty())
    x = emit.sum(x, repeated, /*keepdim=*/true);
  return emit.cast(x, want.getElementType());
}
