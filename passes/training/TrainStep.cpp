// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/gradient/CheckBackward.h"
#include "passes/gradient/Selection.h"
#include "passes/inference/Passes.h"
#include "passes/training/Passes.h"
#include "passes/training/ReadTraining.h"
#include "passes/training/StepUpdate.h"

#include "dialects/dist/FunctionAttributes.h"
#include "importers/plan/Plan.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

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

/// Marks the casts to a longer type that a gradient is the sum of.
void markCasts(Value gradient) {
  llvm::SetVector<Value> summed;
  summed.insert(gradient);
  for (size_t i = 0; i < summed.size(); ++i) {
    Operation *op = summed[i].getDefiningOp();
    if (auto sum = dyn_cast_or_null<aten::AddOp>(op)) {
      summed.insert(sum.getSelf());
      summed.insert(sum.getOther());
    } else if (auto widened = dyn_cast_or_null<aten::ToCopyOp>(op)) {
      Type from = aten::elementTypeOf(widened.getSelf()),
           to = aten::elementTypeOf(widened.getResult());
      if (isa<FloatType>(from) && from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth())
        widened->setAttr(kWidenAttr, UnitAttr::get(op->getContext()));
    }
  }
}

/// Sets the type in which a parameter is updated, and that in which its gradient is summed over
/// ranks: casts stand before the sum or behind it.
void choosePrecision(Emitter &emit, const plan::Training &training, TrainedParameter &parameter) {
  Type own = aten::elementTypeOf(parameter.argument);
  parameter.updated = own;
  if (!training.precision)
    return;
  if ((own.isBF16() || own.isF16()) && training.precision->masters == "f32")
    parameter.updated = Float32Type::get(own.getContext());
  if (training.precision->reduce == "f32") {
    parameter.gradient = emit.cast(parameter.gradient, parameter.updated);
    return markCasts(parameter.gradient);
  }
  auto widened = parameter.gradient.getDefiningOp<aten::ToCopyOp>();
  if (widened && widened->hasOneUse() && isa<FloatType>(aten::elementTypeOf(widened.getSelf())))
    parameter.gradient = widened.getSelf();
}

struct TrainStepPass : shardc::impl::TrainStepBase<TrainStepPass> {
  using TrainStepBase::TrainStepBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    plan::Training training;
    if (failed(readTraining(module, train, training)))
      return signalPassFailure();
    SymbolTable symbols(module);
    auto source = symbols.lookup<func::FuncOp>(function);
    auto mesh = module->getAttrOfType<dist::MeshAttr>(dist::kMeshAttr);
    if (failed(checkSource(source, mesh, symbols)))
      return signalPassFailure();

    OwningOpRef<func::FuncOp> stepFunction(source.clone()), accumulateFunction;
    forgetAttention(*stepFunction);
    bool usable = succeeded(build(*stepFunction, mesh, training, /*isStep=*/true));
    // What is wrong in one of them is wrong in the other, and said.
    if (usable && training.microBatches > 1) {
      accumulateFunction = source.clone();
      forgetAttention(*accumulateFunction);
      usable = succeeded(build(*accumulateFunction, mesh, training, /*isStep=*/false));
    }
    // Whoever asks the model between two steps wants no dropout, and changes nothing.
    usable &= succeeded(bringToInference(source));
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

  LogicalResult checkSource(func::FuncOp source, dist::MeshAttr mesh, SymbolTable &symbols) {
    Location loc = getOperation().getLoc();
    if (!source || source.isDeclaration() || !source.getBody().hasOneBlock())
      return emitError(loc) << "there is no function '" << function << "' of one block to train";
    for (StringRef name : {"train_step", "accumulate"})
      if (symbols.lookup(name))
        return emitError(loc) << "there is a function '" << name << "' already";
    return checkPlaced(source, mesh);
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
    auto lossOf = [&] {
      return target.getBody().front().getTerminator()->getOperand(selected.losses.front());
    };
    StepBuilder step(target, mesh);
    StepUpdate update(step, training, dataAxes, mesh);
    backward.seed(selected.losses.front(), update.scaleLoss(lossOf()));
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
        parameters.push_back({target.getArgument(argument),
                              asProduced(gradient),
                              {},
                              name,
                              training.numbersOf(names)});
        choosePrecision(step.emitter(), training, parameters.back());
      } else if (isStep) {
        ++numUnreached;
        emitRemark(target.getLoc())
            << "the loss does not depend on '" << name << "': the step leaves it as it is";
      }
    }
    if (parameters.empty())
      return emitError(target.getLoc()) << "the loss depends on no parameter that is trained";
    step.leaveOpen();
    update.setParameters(parameters);
    if (!isStep) {
      update.accumulate(lossOf());
      return step.finish();
    }
    update.update(lossOf());
    numTrained += parameters.size();
    numStates += update.getNumStates();
    lossName = dist::getNames(target.getResultAttrDict(selected.losses.front())).front().str();
    return step.finish();
  }

  /// Patterns that match no parameter are mistakes.
  static LogicalResult checkPatterns(func::FuncOp target, const plan::Training &training) {
    std::vector<std::string> names;
    for (unsigned i = 0; i < target.getNumArguments(); ++i) {
      if (kindOf(target, i) == "parameter")
        for (StringRef name : dist::getNames(target.getArgAttrDict(i)))
          names.push_back(name.str());
    }
    bool ok = true;
    auto check = [&](StringRef pattern, StringRef key) {
      if (llvm::any_of(names, [&](StringRef name) { return plan::matchesPattern(pattern, name); }))
        return;
      ok = false;
      emitError(target.getLoc()) << "train: " << key << ": no parameter matches '" << pattern << "'"
                                 << didYouMean(pattern, names);
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
        dist::LayoutAttr layout = dist::getLayout(target.getArgumentTypes()[i]);
        if (kindOf(target, i) == "input" && layout && layout.getValue().mesh == mesh &&
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
    bool isScaled = training.precision && training.precision->hasDynamicScale();
    if (training.nonFinite != "continue" || isScaled)
      list.set("skipped", b.getStringAttr(kSkipped));
    if (training.precision) {
      if (!training.precision->compute.empty())
        list.set("compute", b.getStringAttr(training.precision->compute));
      list.set("masters", b.getStringAttr(training.precision->masters));
    }
    if (isScaled)
      list.set("loss_scale", b.getStringAttr(kLossScale));
    list.set("non_finite", b.getStringAttr(training.nonFinite));
    module->setAttr(dist::kTrainingAttr, list.getDictionary(&getContext()));
  }

  std::string lossName;
};

} // namespace
