// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/WindowedImages.h"

#include "passes/localize/RemadeBorders.h"

#include "dialects/aten/Spatial.h"
#include "dialects/interfaces/FewUsers.h"

using namespace mlir;
using namespace shardc;

static std::optional<SplitDim> splitDim(Value placed, int64_t dim) {
  dist::LayoutAttr layout = dist::getLayout(placed.getType());
  int64_t size = cast<RankedTensorType>(placed.getType()).getDimSize(static_cast<unsigned>(dim));
  if (!layout || ShapedType::isDynamic(size))
    return std::nullopt;
  return SplitDim{size, layout.getValue().splitOfDim(dim)};
}

std::optional<HaloDim> shardc::firstHaloDim(Operation *op) {
  auto windowed = dyn_cast<aten::WindowOpInterface>(op);
  if (!windowed)
    return std::nullopt;
  aten::Windows windows = windowed.getWindows();
  int64_t imageRank = aten::typeOf(op->getOperand(0)).getRank();
  int64_t resultRank = aten::typeOf(op->getResult(0)).getRank();
  for (auto [i, window] : llvm::enumerate(windows)) {
    auto fromEnd = static_cast<int64_t>(i) - static_cast<int64_t>(windows.size());
    std::optional<SplitDim> image = splitDim(op->getOperand(0), imageRank + fromEnd),
                            positions = splitDim(op->getResult(0), resultRank + fromEnd);
    if (!image || !positions)
      return std::nullopt;
    if ((window.isIdentity() && image->size == positions->size) ||
        (image->split.empty() && positions->split.empty()))
      continue;
    return HaloDim{i, imageRank + fromEnd, *image, *positions, window};
  }
  return std::nullopt;
}

SmallVector<HaloDim> shardc::halosBeside(Localizer &localizer, const HaloDim &dim) {
  SmallVector<HaloDim> beside;
  Operation *op = localizer.getOp();
  // An op that is not among those that are looked for, such as an attention, shares nothing.
  if (!firstHaloDim(op) || !hasFewUsers(op->getOperand(0)))
    return {};
  for (Operation *user : op->getOperand(0).getUsers()) {
    if (user == op || user->getOperand(0) != op->getOperand(0))
      continue;
    std::optional<HaloDim> other = firstHaloDim(user);
    if (!other || other->imageDim != dim.imageDim)
      continue;
    other->findCovers(localizer.getMesh().getValue());
    beside.push_back(std::move(*other));
  }
  for (const RemadeBorder *border : localizer.remadeBorders().from(op->getOperand(0), dim.imageDim))
    for (const std::vector<Run> *rows : {&border->rows.before, &border->rows.behind})
      beside.push_back(border->haloOf(*rows));
  return beside;
}
