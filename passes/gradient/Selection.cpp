// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/gradient/Selection.h"

#include "dialects/dist/FunctionAttributes.h"
#include "dialects/interfaces/ModelLocation.h"
#include "support/NearestNames.h"

#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace shardc;

static bool isFloat(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

namespace {

class Selector {
public:
  explicit Selector(func::FuncOp function) : function(function) {}

  LogicalResult run(const Selection &selection, Selected &selected) {
    for (const std::string &name : selection.losses)
      addOutput(name, selected.losses);
    for (const std::string &name : selection.cotangents)
      addOutput(name, selected.cotangents);
    if (selection.losses.empty() && selection.cotangents.empty())
      addDefaultLosses(selected.losses);
    llvm::erase_if(selected.losses, [&](unsigned loss) { return !checkLoss(loss); });
    llvm::erase_if(selected.cotangents, [&](unsigned output) { return !checkOutput(output); });
    if (selection.wrt.empty())
      addParameters(selected.wrt);
    for (const std::string &pattern : selection.wrt)
      addArguments(pattern, selected.wrt);
    return failure(wrong);
  }

private:
  InFlightDiagnostic fail() {
    wrong = true;
    return emitError(function.getLoc());
  }

  static void addOnce(SmallVectorImpl<unsigned> &list, unsigned number) {
    if (!llvm::is_contained(list, number))
      list.push_back(number);
  }

  StringRef kindOf(unsigned result) {
    auto kind = function.getResultAttrOfType<StringAttr>(result, dist::kKindAttr);
    return kind ? kind.getValue() : StringRef("output");
  }
  std::string nameOf(unsigned result) {
    SmallVector<StringRef> names = dist::getNames(function.getResultAttrDict(result));
    return names.empty() ? std::to_string(result) : names.front().str();
  }
  Location placeOf(unsigned result) {
    return function.getBody().front().getTerminator()->getOperand(result).getLoc();
  }

  /// ": the nearest is 'x'", or all names where none is near.
  static std::string hint(StringRef wanted, std::vector<std::string> names) {
    std::string nearest = NearestNames(names).find(wanted.str());
    if (!nearest.empty())
      return "; the nearest is '" + nearest + "'";
    if (names.empty())
      return "; there are none";
    constexpr size_t mostNames = 8;
    bool isLong = names.size() > mostNames;
    if (isLong)
      names.resize(mostNames);
    return "; there are " + llvm::join(names, ", ") + (isLong ? ", ..." : "");
  }

  /// A new value of a buffer or input has the name of that, and is no output.
  bool isOutput(unsigned result) { return !kindOf(result).ends_with("_mutation"); }

  void addOutput(StringRef wanted, SmallVectorImpl<unsigned> &list) {
    unsigned number = 0;
    std::vector<std::string> names;
    SmallVector<unsigned> outputs;
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      if (!isOutput(i))
        continue;
      names.push_back(nameOf(i));
      outputs.push_back(i);
      if (names.back() == wanted)
        return addOnce(list, i);
    }
    // What is written back has no position, as in a plan.
    if (!wanted.getAsInteger(10, number) && number < outputs.size())
      return addOnce(list, outputs[number]);
    fail() << "there is no output '" << wanted << "'" << hint(wanted, names);
  }

  void addDefaultLosses(SmallVectorImpl<unsigned> &list) {
    std::vector<std::string> names;
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      if (!isOutput(i))
        continue;
      names.push_back(nameOf(i));
      if (kindOf(i) == "loss")
        list.push_back(i);
    }
    if (list.empty())
      fail() << "no output is marked as a loss: say which one is, with 'loss'" << hint("", names);
  }

  /// Whether it can be differentiated, be it as a sum, so that what it depends on can be looked at.
  bool checkLoss(unsigned result) {
    auto type = cast<RankedTensorType>(function.getResultTypes()[result]);
    if (type.getRank() == 0 && isFloat(type))
      return true;
    wrong = true;
    emitError(placeOf(result)) << "the loss '" << nameOf(result) << "', made in "
                               << describePlace(placeOf(result))
                               << ", must be a 0-dim tensor of floats, not " << type
                               << "; sum it, or give its cotangent ('cotangents')";
    return isFloat(type);
  }

  bool checkOutput(unsigned result) {
    if (isFloat(function.getResultTypes()[result]))
      return true;
    wrong = true;
    emitError(placeOf(result)) << "the output '" << nameOf(result) << "', made in "
                               << describePlace(placeOf(result))
                               << ", has no cotangent: it is no tensor of floats, but "
                               << function.getResultTypes()[result];
    return false;
  }

  void addParameters(SmallVectorImpl<unsigned> &list) {
    bool anyFrozen = false;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto kind = function.getArgAttrOfType<StringAttr>(i, dist::kKindAttr);
      if (!kind || kind.getValue() != "parameter" || !isFloat(function.getArgumentTypes()[i]))
        continue;
      if (function.getArgAttr(i, dist::kFrozenAttr))
        anyFrozen = true;
      else
        list.push_back(i);
    }
    if (list.empty() && anyFrozen)
      fail() << "all parameters are frozen (requires_grad=False): export the model with those that "
                "are trained, or name arguments with 'wrt'";
    else if (list.empty())
      fail() << "there is no floating-point parameter to differentiate: name arguments with 'wrt'";
  }

  void addArguments(StringRef wanted, SmallVectorImpl<unsigned> &list) {
    llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(wanted);
    if (!pattern) {
      fail() << "'" << wanted << "' is no pattern: " << llvm::toString(pattern.takeError());
      return;
    }
    bool isPattern = wanted.find_first_of("*?[") != StringRef::npos, found = false;
    std::vector<std::string> all;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      for (StringRef name : dist::getNames(function.getArgAttrDict(i))) {
        all.push_back(name.str());
        if (!pattern->match(name) && name != wanted)
          continue;
        bool differentiable = isFloat(function.getArgumentTypes()[i]);
        found |= differentiable || !isPattern;
        if (differentiable)
          addOnce(list, i);
        else if (!isPattern)
          fail() << "'" << wanted << "' has no gradient: it is no tensor of floats, but "
                 << function.getArgumentTypes()[i];
      }
    if (!found)
      fail() << "no argument of floats has the name '" << wanted << "'" << hint(wanted, all);
  }

  func::FuncOp function;
  bool wrong = false;
};

} // namespace

LogicalResult shardc::select(func::FuncOp function, const Selection &selection,
                             Selected &selected) {
  return Selector(function).run(selection, selected);
}
