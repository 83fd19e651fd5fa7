// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/ElementTypes.h"
#include "dialects/exec/Exec.h"
#include "lowering/cuda/backend/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc::cuda {
#define GEN_PASS_DEF_CUDAEMBEDCONSTANTS
#include "lowering/cuda/backend/Passes.h.inc"
} // namespace shardc::cuda

using namespace mlir;
using namespace shardc;

namespace {

/// The parameters in the description of a program, to which constants are added.
class ProgramParameters {
public:
  explicit ProgramParameters(DictionaryAttr program) : program(program) {
    llvm::append_range(parameters, program.getAs<ArrayAttr>("parameters"));
    size_t axes = 0;
    if (auto mesh = program.getAs<DictionaryAttr>("mesh"))
      if (auto list = mesh.getAs<ArrayAttr>("axes"))
        axes = list.size();
    SmallVector<StringRef> whole(axes, "R");
    layout = "[" + llvm::join(whole, ", ") + "]";
  }

  /// Number of the parameter.
  int64_t add(memref::GlobalOp global);
  DictionaryAttr result() const {
    NamedAttrList fields(program);
    fields.set("parameters", ArrayAttr::get(program.getContext(), parameters));
    return fields.getDictionary(program.getContext());
  }

private:
  DictionaryAttr program;
  SmallVector<Attribute> parameters;
  std::string layout;
};

int64_t ProgramParameters::add(memref::GlobalOp global) {
  Builder b(program.getContext());
  SmallVector<Attribute> shape;
  for (int64_t size : global.getType().getShape())
    shape.push_back(b.getI64IntegerAttr(size));
  // No parameter of a model has such a name.
  std::string name = ("constant:" + global.getSymName()).str();
  NamedAttrList fields;
  fields.set("constant", b.getBoolAttr(true));
  fields.set("data", global.getInitialValueAttr());
  fields.set("layout", b.getStringAttr(layout));
  fields.set("mutable", b.getBoolAttr(false));
  fields.set("names", b.getStrArrayAttr({name}));
  fields.set("shape", b.getArrayAttr(shape));
  fields.set("type", b.getI32IntegerAttr(exec::runtimeType(global.getType().getElementType())));
  parameters.push_back(fields.getDictionary(program.getContext()));
  return static_cast<int64_t>(parameters.size()) - 1;
}

struct EmbedConstants : cuda::impl::CudaEmbedConstantsBase<EmbedConstants> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    auto program = module->getAttrOfType<DictionaryAttr>(exec::kProgramAttr);
    std::optional<ProgramParameters> parameters;
    DenseMap<Operation *, int64_t> numbers;
    for (auto entry : module.getOps<func::FuncOp>()) {
      if (!entry->hasAttr(exec::kEntryAttr))
        continue;
      numberParameters(entry);
      DenseMap<Operation *, Value> arguments;
      SmallVector<memref::GetGlobalOp> uses;
      entry.walk([&](memref::GetGlobalOp use) { uses.push_back(use); });
      for (memref::GetGlobalOp use : uses) {
        auto global = symbols.lookup<memref::GlobalOp>(use.getName());
        if (!program) {
          use.emitError("a constant of a program for a device is a parameter, and the module has "
                        "no '")
              << exec::kProgramAttr << "' to name it in";
          return signalPassFailure();
        }
        if (!parameters)
          parameters.emplace(program);
        auto [number, isNew] = numbers.try_emplace(global, 0);
        if (isNew) {
          number->second = parameters->add(global);
          ++constants;
        }
        Value &argument = arguments[global];
        if (!argument)
          argument = addArgument(entry, use, number->second);
        use.replaceAllUsesWith(argument);
        use.erase();
      }
    }
    if (!parameters)
      return;
    module->setAttr(exec::kProgramAttr, parameters->result());
    for (auto global : llvm::make_early_inc_range(module.getOps<memref::GlobalOp>()))
      if (numbers.contains(global))
        global.erase();
  }

  /// Numbers that follow from the order of arguments, which more of them would change.
  static void numberParameters(func::FuncOp entry) {
    Builder b(entry.getContext());
    llvm::DenseMap<Attribute, int64_t> count;
    for (unsigned i = 0; i < entry.getNumArguments(); ++i) {
      auto kind = entry.getArgAttrOfType<exec::ArgumentKindAttr>(i, exec::kArgumentAttr);
      if (kind && !entry.getArgAttr(i, exec::kIndexAttr))
        entry.setArgAttr(i, exec::kIndexAttr, b.getI64IntegerAttr(count[kind]++));
    }
  }

  static Value addArgument(func::FuncOp entry, memref::GetGlobalOp use, int64_t number) {
    Builder b(entry.getContext());
    NamedAttrList attributes;
    attributes.set(exec::kArgumentAttr,
                   exec::ArgumentKindAttr::get(entry.getContext(), exec::ArgumentKind::Parameter));
    attributes.set(exec::kIndexAttr, b.getI64IntegerAttr(number));
    unsigned position = entry.getNumArguments();
    if (failed(entry.insertArgument(position, use.getType(),
                                    attributes.getDictionary(entry.getContext()), use.getLoc())))
      return {};
    return entry.getArgument(position);
  }
};

} // namespace
