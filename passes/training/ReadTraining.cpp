// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/training/ReadTraining.h"

#include "dialects/dist/FunctionAttributes.h"
#include "importers/plan/Plan.h"

using namespace mlir;

namespace shardc::training {

LogicalResult readTraining(ModuleOp module, std::string text, plan::Training &training) {
  auto given = module->getAttrOfType<StringAttr>(dist::kTrainAttr);
  if (text.empty() && given)
    text = given.str();
  if (text.empty())
    return emitError(module.getLoc())
           << "nothing says what a training step does: the plan has no section 'train'";
  // Pass options lose their outer braces.
  if (!StringRef(text).starts_with("{"))
    text = "{" + text + "}";
  std::vector<std::string> errors;
  plan::parseTraining(text, "train", training, errors);
  for (const std::string &problem : training.validate())
    errors.push_back("train: " + problem);
  for (const std::string &problem : errors)
    emitError(module.getLoc()) << problem;
  return success(errors.empty());
}

LogicalResult checkPlaced(func::FuncOp function, dist::MeshAttr mesh) {
  bool isPlaced = mesh && llvm::all_of(function.getArgumentTypes(), [](Type type) {
                    return !isa<RankedTensorType>(type) || dist::getLayout(type);
                  });
  if (!isPlaced)
    return emitError(function.getLoc())
           << "function '" << function.getName() << "' is not placed: run dist-place before";
  return success();
}

StringRef kindOf(FunctionOpInterface function, unsigned argument) {
  auto kind = function.getArgAttrOfType<StringAttr>(argument, dist::kKindAttr);
  return kind ? kind.getValue() : StringRef();
}

bool matches(FunctionOpInterface function, unsigned argument, ArrayRef<std::string> patterns) {
  return llvm::any_of(dist::getNames(function.getArgAttrDict(argument)), [&](StringRef name) {
    return llvm::any_of(patterns,
                        [&](StringRef pattern) { return plan::matchesPattern(pattern, name); });
  });
}

std::string didYouMean(StringRef pattern, const std::vector<std::string> &names) {
  std::string nearest = plan::nearestNames(pattern, names);
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

} // namespace shardc::training
