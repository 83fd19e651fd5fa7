// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/gradient/CheckBackward.h"
#include "passes/gradient/Selection.h"
#include "passes/training/Passes.h"
#include "passes/training/StepUpdate.h"

#include "dialects/dist/FunctionAttributes.h"
#include "importers/plan/Plan.h"

#include "mlir/IR/SymbolTable.h"

namespace shardc {
#define GEN_PASS_DEF_TRAINSTEP
#include "passes/training/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;
using namespace shardc::training;

namespace {

/// The gradient without redistributions to the layout of its parameter, which `gradients` returns
/// it in, and to that of a use of the parameter: the step wants another one, and sums over ranks
/// are to be made once.
Value asProduced(Value gradient) {
  while (auto op = gradient.getDefiningOp<dist::RedistributeOp>()) {
    if (!gradient.use_empty() && !gradient.hasOneUse())
      break;
    gradient = op.getInput();
  }
  return gradient;
}

struct TrainStepPass : shardc::impl::TrainStepBase<TrainStepPass> {
  using TrainStepBase::TrainStepBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    plan::Training training;
    if (failed(readTraining(training)))
      return signalPassFailure();
    SymbolTable symbols(module);
    auto source = symbols.lookup<func::FuncOp>(function);
    auto mesh = module->getAttrOfType<dist::MeshAttr>(dist::kMeshAttr);
    if (failed(checkSource(source, mesh, symbols)))
      return signalPassFailure();

    OwningOpRef<func::FuncOp> stepFunction(source.clone()), accumulateFunction;
    bool usable = succeeded(build(*stepFunction, mesh, training, /*isStep=*/true));
    // What is wrong in one of them is wrong in the other, and said.
    if (usable && training.microBatches > 1) {
      accumulateFunction = source.clone();
      usable = succeeded(build(*accumulateFunction, mesh, training, /*isStep=*/false));
    }
    if (!usable)
      return signalPassFailure();
    describe(training, module);
    Block::iterator position = std::next(Block::iterator(source));
    insert(symbols, stepFunction, "train_step", position);
    if (accumulateFunction)
      insert(symbols, accumulateFunction, "accumulate", position);
  }

private:
  static void insert(SymbolTable &symbols, OwningOpRef<func::FuncOp> &made, StringRef name,
                     Block::iterator position) {
    made->setName(name);
    symbols.insert(made.release(), position);
  }

  LogicalResult readTraining(plan::Training &training) {
    auto given = getOperation()->getAttrOfType<StringAttr>(dist::kTrainAttr);
    std::string text = !train.empty() ? train.getValue() : given ? given.str() : "";
    if (text.empty())
      return emitError(getOperation().getLoc())
             << "nothing says what a training step does: the plan has no section 'train'";
    // Pass options lose their outer braces.
    if (!StringRef(text).starts_with("{"))
      text = "{" + text + "}";
    std::vector<std::string> errors;
    plan::parseTraining(text, "train", training, errors);
    for (const std::string &problem : training.validate())
      errors.push_back("train: " + problem);
    for (const std::string &problem : errors)
      emitError(getOperation().getLoc()) << problem;
    return success(errors.empty());
  }

  LogicalResult checkSource(func::FuncOp source, dist::MeshAttr mesh, SymbolTable &symbols) {
    Location loc = getOperation().getLoc();
    if (!source || source.isDeclaration() || !source.getBody().hasOneBlock())
      return emitError(loc) << "there is no function '" << function << "' of one block to train";
    for (StringRef name : {"train_step", "accumulate"})
      if (symbols.lookup(name))
        return emitError(loc) << "there is a function '" << name << "' already";
    bool isPlaced = mesh && llvm::all_of(source.getArgumentTypes(), [](Type type) {
                      return !isa<RankedTensorType>(type) || dist::getLayout(type);
                    });
    if (!isPlaced)
      return emitError(source.getLoc())
             << "function '" << function << "' is not placed: run dist-place before";
    return success();
  }

  LogicalResult build(func::FuncOp target, dist::MeshAttr mesh, const plan::Training &training,
                      bool isStep) {
    Selection selection;
    if (!training.loss.empty())
      selection.losses.push_back(training.loss);
    Selected selected;
    bool usable = succeeded(select(target, selection, selected));
    usable &= succeeded(checkPatterns(target, training));
    llvm::erase_if(selected.wrt,
                   [&](unsigned argument) { return matches(target, argument, training.frozen); });
    if (selected.wrt.empty() && usable)
      return emitError(target.getLoc()) << "train: all parameters are frozen";
    SmallVector<unsigned> dataAxes;
    usable &= succeeded(findDataAxes(target, mesh.getValue(), training, dataAxes));
    usable &= succeeded(checkTypes(target, selected.wrt));
    Backward backward(target, mesh, selected.wrt, selected.losses);
    usable &= succeeded(checkBackward(target, backward, selected.wrt));
    for (unsigned output : selected.losses)
      backward.seed(output);
    usable &= succeeded(backward.build());
    if (!usable)
      return failure();
    if (isStep)
      warnOfAliases(target, backward);

    SmallVector<TrainedParameter> parameters;
    for (unsigned argument : selected.wrt) {
      SmallVector<StringRef> names = dist::getNames(target.getArgAttrDict(argument));
      std::string name = names.empty() ? std::to_string(argument) : names.front().str();
      if (Value gradient = backward.gradientOf(argument)) {
        parameters.push_back(
            {target.getArgument(argument), asProduced(gradient), name, training.numbersOf(names)});
      } else if (isStep) {
        ++numUnreached;
        emitRemark(target.getLoc())
            << "the loss does not depend on '" << name << "': the step leaves it as it is";
      }
    }
    if (parameters.empty())
      return emitError(target.getLoc()) << "the loss depends on no parameter that is trained";
    Value loss = target.getBody().front().getTerminator()->getOperand(selected.losses.front());
    StepBuilder step(target, mesh);
    StepUpdate update(step, training, dataAxes, parameters);
    if (!isStep) {
      update.accumulate();
      return step.finish();
    }
    update.update(loss);
    numTrained += parameters.size();
    numStates += update.getNumStates();
    lossName = dist::getNames(target.getResultAttrDict(selected.losses.front())).front().str();
    return step.finish();
  }

  static bool matches(func::FuncOp target, unsigned argument, ArrayRef<std::string> patterns) {
    return llvm::any_of(dist::getNames(target.getArgAttrDict(argument)), [&](StringRef name) {
      return llvm::any_of(patterns,
                          [&](StringRef pattern) { return plan::matchesPattern(pattern, name); });
    });
  }

  /// Patterns that match no parameter are mistakes.
  static LogicalResult checkPatterns(func::FuncOp target, const plan::Training &training) {
    std::vector<std::string> names;
    for (unsigned i = 0; i < target.getNumArguments(); ++i) {
      auto kind = target.getArgAttrOfType<StringAttr>(i, dist::kKindAttr);
      if (kind && kind.getValue() == "parameter")
        for (StringRef name : dist::getNames(target.getArgAttrDict(i)))
          names.push_back(name.str());
    }
    bool ok = true;
    auto check = [&](StringRef pattern, StringRef key) {
      if (llvm::any_of(names, [&](StringRef name) { return plan::matchesPattern(pattern, name); }))
        return;
      ok = false;
      std::string nearest = plan::nearestNames(pattern, names);
      emitError(target.getLoc()) << "train: " << key << ": no parameter matches '" << pattern << "'"
                                 << (nearest.empty() ? "" : "; did you mean ") << nearest
                                 << (nearest.empty() ? "" : "?");
    };
    for (const std::string &pattern : training.frozen)
      check(pattern, "frozen");
    for (const plan::ParameterGroup &group : training.optimizer.groups)
      for (const std::string &pattern : group.parameters)
        check(pattern, "optimizer.groups");
    return success(ok);
  }

  static LogicalResult checkTypes(func::FuncOp target, ArrayRef<unsigned> wrt) {
    bool ok = true;
    for (unsigned argument : wrt)
      if (!cast<RankedTensorType>(target.getArgumentTypes()[argument]).hasStaticShape()) {
        ok = false;
        emitError(target.getLoc())
            << "train: the parameter of argument " << argument << " has a dynamic size";
      }
    return success(ok);
  }

  /// Axes that shard inputs, unless the plan names others.
  static LogicalResult findDataAxes(func::FuncOp target, const Mesh &mesh,
                                    const plan::Training &training,
                                    SmallVectorImpl<unsigned> &axes) {
    bool ok = true;
    for (const std::string &name : training.zeroAxes) {
      auto found =
          llvm::find_if(mesh.axes, [&](const MeshAxis &axis) { return axis.name == name; });
      if (found == mesh.axes.end()) {
        ok = false;
        emitError(target.getLoc())
            << "train: zero_axes: the mesh " << mesh.str() << " has no axis '" << name << "'";
        continue;
      }
      axes.push_back(unsigned(found - mesh.axes.begin()));
    }
    if (!training.zeroAxes.empty())
      return success(ok);
    for (unsigned axis = 0; axis < mesh.axes.size(); ++axis)
      for (unsigned i = 0; i < target.getNumArguments(); ++i) {
        auto kind = target.getArgAttrOfType<StringAttr>(i, dist::kKindAttr);
        dist::LayoutAttr layout = dist::getLayout(target.getArgumentTypes()[i]);
        if (kind && kind.getValue() == "input" && layout && layout.getValue().mesh == mesh &&
            layout.getValue().placements[axis].isShard()) {
          axes.push_back(axis);
          break;
        }
      }
    return success();
  }

  /// For the manifest.
  void describe(const plan::Training &training, ModuleOp module) {
    Builder b(&getContext());
    NamedAttrList list;
    list.set("step", b.getStringAttr("train_step"));
    if (training.microBatches > 1)
      list.set("accumulate", b.getStringAttr("accumulate"));
    list.set("micro_batches", b.getI64IntegerAttr(training.microBatches));
    list.set("loss", b.getStringAttr(lossName));
    list.set("learning_rate", b.getStringAttr(kLearningRate));
    if (training.clipNorm)
      list.set("grad_norm", b.getStringAttr(kGradNorm));
    if (training.nonFinite != "continue")
      list.set("skipped", b.getStringAttr(kSkipped));
    list.set("non_finite", b.getStringAttr(training.nonFinite));
    module->removeAttr(dist::kTrainAttr);
    module->setAttr(dist::kTrainingAttr, list.getDictionary(&getContext()));
  }

  std::string lossName;
};

} // namespace
