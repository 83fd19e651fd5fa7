// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that users have registered: the same function on what a rank has, once it has the
// elements that its positions of a window cover (Halos.h).

#include "passes/localize/Halos.h"
#include "passes/localize/Models.h"

#include "dialects/aten/Custom.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Where the positions of a window are: a dim of a result, or of an operand without a window.
std::optional<SplitDim> positionsOf(Localizer &localizer, const RuleText &rule, StringRef name) {
  auto find = [&](const std::vector<std::vector<TextDim>> &tensors,
                  bool isResult) -> std::optional<SplitDim> {
    for (auto [number, dims] : llvm::enumerate(tensors))
      for (auto [d, dim] : llvm::enumerate(dims)) {
        if (dim.window || dim.names.size() != 1 || dim.names.front() != name)
          continue;
        auto tensor = static_cast<unsigned>(number);
        auto place = static_cast<int64_t>(d);
        RankedTensorType type =
            isResult ? localizer.globalResultType(tensor) : localizer.globalOperandType(tensor);
        if (type.getDimSize(place) != 1)
          return isResult ? localizer.resultDim(tensor, place)
                          : localizer.operandDim(tensor, place);
      }
    return std::nullopt;
  };
  std::optional<SplitDim> found = find(rule.results, /*isResult=*/true);
  return found ? found : find(rule.operands, /*isResult=*/false);
}

/// The dims of an operand over which windows slide and that are sharded.
SmallVector<HaloDim> haloDimsOf(Localizer &localizer, const RuleText &rule, unsigned operand) {
  SmallVector<HaloDim> dims;
  for (auto [d, dim] : llvm::enumerate(rule.operands[operand])) {
    if (!dim.window)
      continue;
    auto place = static_cast<int64_t>(d);
    std::optional<SplitDim> positions = positionsOf(localizer, rule, dim.names.front());
    bool isSharded =
        !localizer.operandAxes(operand, place).empty() || (positions && !positions->split.empty());
    if (!positions || !isSharded)
      continue;
    aten::Window window{dim.window->kernel, dim.window->stride, /*padding=*/0,
                        dim.window->dilation};
    HaloDim halo{dims.size(), place,  localizer.operandDim(operand, place),
                 *positions,  window, operand};
    halo.findCovers(localizer.getMesh().getValue());
    dims.push_back(std::move(halo));
  }
  return dims;
}

struct CustomOpModel : LocalizeModel<CustomOpModel, aten::CustomOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::CustomOp op,
                         ValueRange operands) {
    RuleText rule = aten::ruleOf(op);
    SmallVector<Value> locals(operands);
    for (unsigned operand = 0; operand < locals.size(); ++operand)
      if (SmallVector<HaloDim> dims = haloDimsOf(localizer, rule, operand); !dims.empty())
        locals[operand] = coveredImage(localizer, builder, dims, locals[operand], /*fill=*/0).value;
    return sameOp(localizer, builder, locals);
  }
};

} // namespace

void shardc::attachCustomOpModels(MLIRContext *context) {
  attachModel<aten::CustomOp, CustomOpModel>(context);
}
