// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/ModelNames.h"
#include "passes/placement/Passes.h"

#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/RandomMode.h"
#include "dialects/dist/RecomputeAttributes.h"
#include "dialects/dist/SignatureAttributes.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MemoryBuffer.h"

namespace shardc {
#define GEN_PASS_DEF_APPLYPLAN
#include "passes/placement/Passes.h.inc"
} // namespace shardc

using namespace mlir;

namespace shardc {
namespace {

StringRef strengthName(plan::Annotation::Strength strength) {
  switch (strength) {
  case plan::Annotation::Strength::Pinned:
    return "pinned";
  case plan::Annotation::Strength::Normal:
    return "normal";
  case plan::Annotation::Strength::Weak:
    return "weak";
  }
  return "";
}

class ApplyPlanPass : public impl::ApplyPlanBase<ApplyPlanPass> {
public:
  using ApplyPlanBase::ApplyPlanBase;

  void runOnOperation() override {
    constrained.clear();
    std::vector<std::string> errors;
    plan::Plan read = readPlan(errors);
    Mesh meshValue = read.mesh;
    if (meshValue.axes.empty())
      if (auto given = getOperation()->getAttrOfType<dist::MeshAttr>(dist::kMeshAttr))
        meshValue = given.getValue();
    bool isUsable = !meshValue.axes.empty();
    if (meshValue.axes.empty() && errors.empty())
      errors.push_back("no mesh is given; name its axes in the plan" +
                       (plan.empty() ? "" : " '" + plan + "'") +
                       " (mesh: {dp: 2, tp: 4}) or on the command line (--mesh dp=2,tp=4)");
    for (const std::string &problem : meshValue.validate()) {
      isUsable = false;
      errors.push_back("mesh: " + problem);
    }
    // Rules with mistakes do not keep those of the others from being seen; without a mesh nobody
    // knows what an axis is.
    if (isUsable) {
      getOperation()->setAttr(dist::kMeshAttr, dist::MeshAttr::get(&getContext(), meshValue));
      nameMeshes(read, errors);
      noteRecompute(read);
      noteTraining(read, errors);
      noteRandomMode(read, errors);
      for (auto function : getOperation().getOps<func::FuncOp>())
        if (!function.isExternal() && function.isPublic())
          apply(function, read, meshValue, errors);
    }
    for (const std::string &problem : errors)
      emitError(UnknownLoc::get(&getContext())) << problem;
    if (!errors.empty())
      signalPassFailure();
  }

private:
  /// For dist-recompute, once there is a backward.
  void noteRecompute(const plan::Plan &read) {
    Builder b(&getContext());
    SmallVector<StringRef> patterns;
    for (const plan::Recomputed &entry : read.recompute)
      patterns.push_back(entry.pattern);
    if (!patterns.empty())
      getOperation()->setAttr(dist::kRecomputeAttr, b.getStrArrayAttr(patterns));
    if (read.reshardAfterForward)
      getOperation()->setAttr(dist::kReshardAfterForwardAttr,
                              b.getBoolAttr(*read.reshardAfterForward));
  }

  /// For aten-train-step, once the program is placed.
  void noteTraining(const plan::Plan &read, std::vector<std::string> &errors) {
    if (!read.training)
      return;
    for (const std::string &problem : read.training->validate())
      errors.push_back("train: " + problem);
    getOperation()->setAttr(dist::kTrainAttr,
                            StringAttr::get(&getContext(), plan::printTraining(*read.training)));
  }

  /// For dist-localize.
  void noteRandomMode(const plan::Plan &read, std::vector<std::string> &errors) {
    if (read.random.empty())
      return;
    if (!dist::parseRandomMode(read.random))
      errors.push_back("random: there is no mode '" + read.random +
                       "'; it must be default, dtensor or per-rank");
    getOperation()->setAttr(dist::kRandomAttr, StringAttr::get(&getContext(), read.random));
  }

  plan::Plan readPlan(std::vector<std::string> &errors) {
    plan::Plan read;
    if (!plan.empty()) {
      auto file = llvm::MemoryBuffer::getFile(plan, /*IsText=*/true);
      if (!file)
        errors.push_back("cannot read the plan '" + plan + "': " + file.getError().message());
      else
        plan::parseYaml((*file)->getBuffer(), plan, read, errors);
    }
    for (const TextOption &place : places)
      plan::parsePlaceSpec(place.text, read, errors);
    for (const TextOption &train : trains) {
      if (!read.training)
        read.training.emplace();
      plan::parseTrainSpec(train.text, *read.training, errors);
    }
    if (!random.empty())
      read.random = random;
    if (!mesh.empty())
      plan::parseMesh(mesh, "mesh", read.mesh, errors);
    for (const TextOption &other : meshes)
      plan::parseNamedMesh(other.text, "--other-mesh " + other.text, read, errors);
    return read;
  }

  /// The plan may use those that the module names already.
  void nameMeshes(plan::Plan &read, std::vector<std::string> &errors) {
    NamedAttrList names;
    if (auto known = getOperation()->getAttrOfType<DictionaryAttr>(dist::kMeshesAttr))
      for (NamedAttribute other : known) {
        names.set(other.getName(), other.getValue());
        bool isGiven = llvm::any_of(read.meshes, [&](const plan::NamedMesh &given) {
          return given.name == other.getName().getValue();
        });
        if (!isGiven)
          read.meshes.push_back(
              {other.getName().str(), cast<dist::MeshAttr>(other.getValue()).getValue()});
      }
    for (const plan::NamedMesh &other : read.meshes) {
      if (other.mesh.axes.empty()) // reported
        continue;
      for (const std::string &problem : other.mesh.validate())
        errors.push_back("mesh '" + other.name + "': " + problem);
      names.set(other.name, dist::MeshAttr::get(&getContext(), other.mesh));
    }
    if (!names.empty() && errors.empty())
      getOperation()->setAttr(dist::kMeshesAttr, names.getDictionary(&getContext()));
  }

  void apply(func::FuncOp function, const plan::Plan &read, const Mesh &meshValue,
             std::vector<std::string> &errors) {
    ModelIndex index = indexModel(function);
    plan::Resolution resolution = plan::resolvePlan(read, meshValue, index.names);
    errors.insert(errors.end(), resolution.errors.begin(), resolution.errors.end());
    if (!errors.empty())
      return;
    if (read.training && read.training->zero >= 3)
      plan::storeShards(*read.training, meshValue, index.names, resolution.annotations);
    for (const std::string &remark : resolution.remarks)
      emitRemark(function.getLoc()) << remark;
    dist::SignatureAttributes signature(function);
    for (const plan::Annotation &annotation : resolution.annotations)
      if (annotation.mesh.empty())
        write(signature, index, annotation);
    signature.store();
    for (const plan::Annotation &annotation : resolution.annotations)
      if (!annotation.mesh.empty())
        cross(function, index, annotation);
    function.setType(
        FunctionType::get(&getContext(), function.getBody().getArgumentTypes(),
                          function.getBody().front().getTerminator()->getOperandTypes()));
  }

  /// An input or output on another mesh has its layout at once. What comes from there, or goes
  /// there, is placed with the program.
  void cross(func::FuncOp function, const ModelIndex &index, const plan::Annotation &annotation) {
    auto layout = dist::LayoutAttr::get(&getContext(), annotation.layout);
    auto placed = [&](Value value) {
      auto type = cast<RankedTensorType>(value.getType());
      return RankedTensorType::get(type.getShape(), type.getElementType(), layout);
    };
    ++numAnnotated;
    if (annotation.target == plan::Annotation::Target::Input) {
      BlockArgument argument = function.getArgument(index.inputArguments[annotation.index]);
      Type here = argument.getType();
      argument.setType(placed(argument));
      if (argument.use_empty())
        return;
      OpBuilder builder = OpBuilder::atBlockBegin(argument.getOwner());
      auto come = dist::RedistributeOp::create(builder, argument.getLoc(), here, argument,
                                               /*backward=*/false);
      argument.replaceAllUsesExcept(come.getResult(), come);
      return;
    }
    Operation *end = function.getBody().front().getTerminator();
    OpOperand &output = end->getOpOperand(index.outputResults[annotation.index]);
    OpBuilder builder(end);
    output.set(dist::RedistributeOp::create(builder, output.get().getLoc(), placed(output.get()),
                                            output.get(), /*backward=*/false));
  }

  void write(dist::SignatureAttributes &signature, ModelIndex &index,
             const plan::Annotation &annotation) {
    using Target = plan::Annotation::Target;
    auto layout = dist::LayoutAttr::get(&getContext(), annotation.layout);
    SmallVector<StringRef> origins(annotation.origins.begin(), annotation.origins.end());
    ArrayAttr origin = Builder(&getContext()).getStrArrayAttr(origins);
    SmallVector<StringRef> names;
    for (plan::Annotation::Strength strength : annotation.strengths)
      names.push_back(strengthName(strength));
    ArrayAttr strength = Builder(&getContext()).getStrArrayAttr(names);
    auto annotateArgument = [&](unsigned number) {
      NamedAttrList &attributes = signature.argument(number);
      attributes.set(dist::kAnnotationAttr, layout);
      attributes.set(dist::kOriginAttr, origin);
      attributes.set(dist::kStrengthAttr, strength);
      ++numAnnotated;
    };
    unsigned i = annotation.index;
    switch (annotation.target) {
    case Target::Parameter:
      return annotateArgument(index.parameterArguments[i]);
    case Target::Input:
      return annotateArgument(index.inputArguments[i]);
    case Target::Output:
      signature.result(index.outputResults[i]).set(dist::kAnnotationAttr, layout);
      signature.result(index.outputResults[i]).set(dist::kOriginAttr, origin);
      ++numAnnotated;
      return;
    case Target::ModuleInput:
      return constrain(index.modules[i], index.modules[i].inputs[annotation.value], layout, origin,
                       /*insideUses=*/true);
    case Target::ModuleOutput:
      return constrain(index.modules[i], index.modules[i].outputs[annotation.value], layout, origin,
                       /*insideUses=*/false);
    }
  }

  /// Puts a constraint on a value for its uses inside the module, or for those outside (returns
  /// included).
  void constrain(const ModelIndex::Boundary &boundary, Value value, dist::LayoutAttr layout,
                 ArrayAttr origin, bool insideUses) {
    llvm::SmallDenseSet<Operation *> inside(boundary.operations.begin(), boundary.operations.end());
    // Modules nest: the value may be constrained already on its way to some of these uses.
    SmallVector<Value> &forms =
        constrained.try_emplace(value, SmallVector<Value>{value}).first->second;
    for (Value form : SmallVector<Value>(forms)) {
      auto matches = [&](OpOperand &use) {
        return !isa<dist::ConstrainOp>(use.getOwner()) &&
               inside.contains(use.getOwner()) == insideUses;
      };
      if (llvm::none_of(form.getUses(), matches))
        continue;
      OpBuilder builder(&getContext());
      builder.setInsertionPointAfterValue(form);
      auto constraint = dist::ConstrainOp::create(builder, form.getLoc(), form, layout);
      constraint->setAttr(dist::kOriginAttr, origin);
      Value result = constraint.getResult();
      form.replaceUsesWithIf(result, matches);
      forms.push_back(result);
    }
    ++numConstrained;
  }

  /// A value and the constraints on it so far.
  llvm::DenseMap<Value, SmallVector<Value>> constrained;
};

} // namespace
} // namespace shardc
