// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/gradient/Backward.h"
#include "passes/gradient/CheckBackward.h"
#include "passes/gradient/CotangentType.h"
#include "passes/gradient/Passes.h"
#include "passes/gradient/Selection.h"

#include "dialects/dist/FunctionAttributes.h"
#include "dialects/interfaces/ModelLocation.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringSet.h"

namespace shardc {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "passes/gradient/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

struct DifferentiatePass : shardc::impl::DifferentiateBase<DifferentiatePass> {
  using DifferentiateBase::DifferentiateBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    auto source = symbols.lookup<func::FuncOp>(function);
    if (!source || source.isDeclaration() || !source.getBody().hasOneBlock()) {
      emitError(module.getLoc()) << "there is no function '" << function
                                 << "' of one block to differentiate";
      return signalPassFailure();
    }
    if (into != function && symbols.lookup(into)) {
      emitError(module.getLoc()) << "there is a function '" << into
                                 << "' already; name another with 'into'";
      return signalPassFailure();
    }
    Selection selection{SmallVector<std::string>(losses.begin(), losses.end()),
                        SmallVector<std::string>(cotangents.begin(), cotangents.end()),
                        SmallVector<std::string>(wrt.begin(), wrt.end())};
    Selected selected;
    bool usable = succeeded(select(source, selection, selected));
    // A copy, which is thrown away with whatever is wrong: all of that is said first.
    OwningOpRef<func::FuncOp> target(source.clone());
    SmallVector<unsigned> outputs = selected.losses;
    outputs.append(selected.cotangents);
    auto mesh = module->getAttrOfType<dist::MeshAttr>(dist::kMeshAttr);
    Backward backward(*target, mesh, selected.wrt, outputs);
    usable &= succeeded(append(*target, backward, selected));
    if (!usable || failed(returnGradients(*target, backward, selected)))
      return signalPassFailure();
    warnOfAliases(*target, backward);
    numDifferentiated += backward.getNumDifferentiated();
    Block::iterator position = std::next(Block::iterator(source));
    if (into == function)
      symbols.erase(source);
    target->setName(into);
    symbols.insert(target.release(), position);
  }

private:
  static LogicalResult append(func::FuncOp target, Backward &backward, const Selected &selected) {
    bool usable = succeeded(checkBackward(target, backward, selected.wrt));
    for (unsigned output : selected.losses)
      backward.seed(output);
    for (unsigned output : selected.cotangents) {
      FailureOr<Value> cotangent = addCotangentArgument(target, output);
      usable &= succeeded(cotangent);
      if (succeeded(cotangent))
        backward.seed(output, *cotangent);
    }
    usable &= succeeded(backward.build());
    return success(usable);
  }

  static FailureOr<Value> addCotangentArgument(func::FuncOp target, unsigned output) {
    DictionaryAttr ofResult = target.getResultAttrDict(output);
    OpBuilder builder(target.getContext());
    NamedAttrList attributes;
    attributes.set(dist::kKindAttr, builder.getStringAttr("input"));
    SmallVector<StringRef> names = dist::getNames(ofResult);
    std::string name = names.empty() ? std::to_string(output) : names.front().str();
    attributes.set(dist::kNameAttr, builder.getStringAttr("cotangent_" + name));
    if (Attribute sizes = ofResult ? ofResult.get(dist::kSizesAttr) : Attribute())
      attributes.set(dist::kSizesAttr, sizes);
    Location loc = target.getBody().front().getTerminator()->getOperand(output).getLoc();
    unsigned number = target.getNumArguments();
    Type type = cotangentType(cast<RankedTensorType>(target.getResultTypes()[output]));
    if (failed(target.insertArgument(number, type, attributes.getDictionary(target.getContext()),
                                     loc)))
      return emitError(loc) << "the output '" << name << "', made in " << describePlace(loc)
                            << ", cannot get a cotangent: its function takes no argument more";
    return target.getArgument(number);
  }

  LogicalResult returnGradients(func::FuncOp target, Backward &backward, const Selected &selected) {
    auto result = cast<func::ReturnOp>(target.getBody().front().getTerminator());
    OpBuilder builder(result);
    SmallVector<Value> values;
    SmallVector<Type> types;
    SmallVector<Attribute> attributes;
    for (unsigned i = 0; i < target.getNumResults(); ++i) {
      if (!outputs && !isMutation(target, i))
        continue;
      values.push_back(result.getOperand(i));
      attributes.push_back(target.getResultAttrDict(i) ? target.getResultAttrDict(i)
                                                       : builder.getDictionaryAttr({}));
    }
    const size_t kept = values.size();
    llvm::StringSet<> gradientNames;
    for (unsigned argument : selected.wrt) {
      Value gradient = backward.gradientOf(argument);
      DictionaryAttr ofArgument = target.getArgAttrDict(argument);
      if (!gradient) {
        ++numUnreached;
        SmallVector<StringRef> names = dist::getNames(ofArgument);
        emitRemark(target.getLoc())
            << "the loss does not depend on '"
            << (names.empty() ? std::to_string(argument) : names.front().str())
            << "': it has no gradient";
        continue;
      }
      auto type = cotangentType(cast<RankedTensorType>(target.getArgumentTypes()[argument]));
      if (dist::LayoutAttr layout = dist::getLayout(type)) {
        // That of a partial argument is not made partial where it is not (G3).
        bool isPartial = !layout.getValue().partialAxes().empty();
        gradient = dist::RedistributeOp::create(builder, gradient.getLoc(), type, gradient,
                                                /*backward=*/isPartial);
      }
      values.push_back(gradient);
      attributes.push_back(attributesOf(ofArgument));
      for (StringRef name : dist::getTrainedNames(ofArgument))
        gradientNames.insert(name);
    }
    for (Attribute &attribute : llvm::MutableArrayRef(attributes).take_front(kept))
      attribute = renamedFrom(gradientNames, cast<DictionaryAttr>(attribute), target.getLoc());
    numGradients += values.size() - kept;
    if (values.size() == kept)
      return emitError(target.getLoc()) << "the loss depends on nothing that is differentiated";
    for (Value value : values)
      types.push_back(value.getType());
    result.getOperandsMutable().assign(values);
    target.setType(builder.getFunctionType(target.getArgumentTypes(), types));
    target.setResAttrsAttr(builder.getArrayAttr(attributes));
    return success();
  }

  /// An output that is a parameter or input as it is has the name of that, which is the gradient's.
  static DictionaryAttr renamedFrom(const llvm::StringSet<> &gradients, DictionaryAttr output,
                                    Location loc) {
    auto kind = output.getAs<StringAttr>(dist::kKindAttr);
    SmallVector<StringRef> names = dist::getNames(output);
    if ((kind && kind.getValue().ends_with("_mutation")) ||
        llvm::none_of(names, [&](StringRef name) { return gradients.contains(name); }))
      return output;
    std::string other = ("output_" + names.front()).str();
    emitRemark(loc) << "the output '" << names.front()
                    << "' has the name of a gradient: it is called '" << other << "' here";
    NamedAttrList attributes(output);
    attributes.set(dist::kNameAttr, StringAttr::get(output.getContext(), other));
    return attributes.getDictionary(output.getContext());
  }

  /// Of the gradient of an argument.
  static DictionaryAttr attributesOf(DictionaryAttr argument) {
    NamedAttrList attributes;
    MLIRContext *context = argument.getContext();
    attributes.set(dist::kKindAttr, StringAttr::get(context, "gradient"));
    Builder builder(context);
    SmallVector<StringRef> names = dist::getTrainedNames(argument);
    if (names.size() == 1)
      attributes.set(dist::kNameAttr, builder.getStringAttr(names.front()));
    else if (!names.empty())
      attributes.set(dist::kNameAttr, builder.getStrArrayAttr(names));
    if (Attribute sizes = argument.get(dist::kSizesAttr))
      attributes.set(dist::kSizesAttr, sizes);
    return attributes.getDictionary(context);
  }
};

} // namespace
