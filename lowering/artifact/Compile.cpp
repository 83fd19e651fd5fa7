// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/artifact/Compile.h"

#include "dialects/exec/Exec.h"
#include "lowering/artifact/Object.h"
#include "lowering/artifact/Tables.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA1.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::artifact;

namespace {

class Compiler {
public:
  Compiler(ModuleOp module, const ArtifactOptions &options, StringRef path)
      : module(module), options(options), path(path) {}

  LogicalResult run();

private:
  LogicalResult fail(llvm::Error error) {
    emitError(module.getLoc()) << llvm::toString(std::move(error));
    return failure();
  }
  llvm::Expected<llvm::SmallVector<char, 0>> emitCode(llvm::TargetMachine &machine);
  void collectFacts();

  ModuleOp module;
  const ArtifactOptions &options;
  StringRef path;
  cpu::Target target;
  llvm::StringMap<VariantFacts> variants;
  bool usesBlas = false;
};

/// What the pipeline noted at the functions.
void Compiler::collectFacts() {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    if (!function->hasAttr(exec::kEntryAttr))
      continue;
    VariantFacts &facts = variants[function.getName()];
    if (auto bytes = function->getAttrOfType<IntegerAttr>(exec::kArenaBytesAttr))
      facts.arenaBytes = bytes.getInt();
    if (auto plan = function->getAttrOfType<FlatSymbolRefAttr>(exec::kPlanAttr))
      facts.plan = plan.getValue().str();
    if (auto slots = function->getAttrOfType<IntegerAttr>(exec::kSlotsAttr))
      facts.slots = slots.getInt();
  }
  usesBlas = module->hasAttr(exec::kUsesBlasAttr);
}

/// For the processor, and without what only programs need that throw or trap.
void setTargetAttributes(llvm::Module &code, const cpu::Target &target) {
  for (llvm::Function &function : code) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", target.features);
    function.addFnAttr("prefer-vector-width", std::to_string(target.vectorBits));
    function.addFnAttr("frame-pointer", "none");
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
}

llvm::Expected<llvm::SmallVector<char, 0>> Compiler::emitCode(llvm::TargetMachine &machine) {
  registerBuiltinDialectTranslation(*module.getContext());
  registerLLVMDialectTranslation(*module.getContext());
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context, options.name);
  if (!code)
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "the lowered program could not be translated to LLVM IR");
  for (llvm::Function &function : code->functions()) {
    if (function.isDeclaration())
      continue;
    bool called = module.lookupSymbol(function.getName()) &&
                  (module.lookupSymbol(function.getName())->hasAttr(exec::kEntryAttr) ||
                   module.lookupSymbol(function.getName())->hasAttr(exec::kPlanAttr));
    if (called)
      function.setVisibility(llvm::GlobalValue::HiddenVisibility);
    else
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  if (llvm::GlobalVariable *table = code->getGlobalVariable("shardc_collectives"))
    table->setVisibility(llvm::GlobalValue::HiddenVisibility);
  setTargetAttributes(*code, target);
  return emitObject(*code, machine);
}

std::string hashOf(StringRef bytes) {
  return llvm::toHex(llvm::SHA1::hash(llvm::arrayRefFromStringRef(bytes)), /*LowerCase=*/true)
      .substr(0, 16);
}

std::string textOf(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  attribute.print(stream);
  return text;
}

LogicalResult Compiler::run() {
  llvm::Expected<cpu::Target> resolved = cpu::resolveTarget(options.target);
  if (!resolved)
    return fail(resolved.takeError());
  target = std::move(*resolved);
  FailureOr<ProgramDescription> program = readDescription(module);
  if (failed(program))
    return failure();
  program->name = options.name;
  for (ParameterDescription &parameter : program->parameters)
    if (parameter.isConstant && options.constants)
      parameter.constant = options.constants(parameter.names.front());
  collectFacts();
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine = cpu::createTargetMachine(target);
  if (!machine)
    return fail(machine.takeError());
  llvm::Expected<llvm::SmallVector<char, 0>> code = emitCode(**machine);
  if (!code)
    return fail(code.takeError());

  CompiledFacts facts;
  facts.target = &target;
  facts.tool = options.tool;
  facts.usesBlas = usesBlas;
  std::string sequences = program->sequenceHashes;
  if (sequences.empty())
    sequences = textOf(module->getAttr(exec::kCollectivesAttr));
  facts.sequenceHash = hashOf(sequences);
  facts.arenaBytes = [&](StringRef variant) { return variants[variant].arenaBytes; };
  // The hash covers code and description; the tables follow from both.
  std::string description = manifestJson(*program, facts);
  facts.artifactHash = hashOf(description + std::string(code->data(), code->size()));
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> tables =
      buildTables(context, module, *program, variants, manifestJson(*program, facts));
  setTargetAttributes(*tables, target);
  llvm::Expected<llvm::SmallVector<char, 0>> data = emitObject(*tables, **machine);
  if (!data)
    return fail(data.takeError());

  llvm::SmallVector<char, 0> objects[] = {std::move(*code), std::move(*data)};
  LinkOptions link;
  link.exported.push_back("shardrt_query");
  link.soname = llvm::sys::path::filename(path).str();
  if (llvm::Error error = linkSharedObject(objects, path, link))
    return fail(std::move(error));
  return success();
}

} // namespace

LogicalResult shardc::writeArtifact(ModuleOp module, const ArtifactOptions &options,
                                    StringRef path) {
  return Compiler(module, options, path).run();
}
