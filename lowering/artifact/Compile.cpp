// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/artifact/Compile.h"

#include "dialects/exec/Exec.h"
#include "lowering/artifact/Link.h"
#include "lowering/artifact/Tables.h"
#include "lowering/artifact/UserLibraries.h"
#include "lowering/host/HostCode.h"
#include "lowering/target/Backend.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA1.h"

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
  void collectFacts();
  std::optional<MemoryFacts> memoryOf(const ProgramDescription &program, StringRef variant);

  ModuleOp module;
  const ArtifactOptions &options;
  StringRef path;
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

std::optional<MemoryFacts> Compiler::memoryOf(const ProgramDescription &program,
                                              StringRef variant) {
  Operation *function = module.lookupSymbol(variant);
  auto account = function ? function->getAttrOfType<DictionaryAttr>(exec::kMemoryAttr) : nullptr;
  if (!account)
    return std::nullopt;
  MemoryFacts facts;
  auto bytes = account.getAs<DenseI64ArrayAttr>("parameters").asArrayRef();
  for (auto [number, size] : llvm::enumerate(bytes)) {
    bool isState = number < program.parameters.size() && program.parameters[number].initial;
    (isState ? facts.states : facts.parameters) += size;
  }
  facts.caller = account.getAs<IntegerAttr>("caller").getInt();
  facts.arena = account.getAs<IntegerAttr>("arena").getInt();
  return facts;
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
  FailureOr<ProgramDescription> program = readDescription(module);
  if (failed(program))
    return failure();
  program->name = options.name;
  for (ParameterDescription &parameter : program->parameters)
    if (parameter.data)
      parameter.constant = *parameter.data;
    else if (parameter.isConstant && options.constants)
      parameter.constant = options.constants(parameter.names.front());
  collectFacts();
  // What the passes saw, from the module itself.
  auto found = target::backendOf(module);
  if (failed(found))
    return failure();
  const auto &[backend, target] = *found;
  llvm::Expected<target::Processor> processor = backend->hostProcessor(target);
  if (!processor)
    return fail(processor.takeError());
  llvm::Expected<llvm::json::Object> described = backend->describe(target);
  if (!described)
    return fail(described.takeError());
  llvm::Expected<target::TargetCode> code = backend->serialize(module, target, options.name);
  if (!code)
    return fail(code.takeError());
  std::vector<target::ObjectCode> &objects = code->objects;

  CompiledFacts facts;
  facts.target = std::move(*described);
  facts.target["kind"] = target.kind;
  facts.tool = options.tool;
  facts.usesBlas = usesBlas;
  std::string sequences = program->sequenceHashes;
  if (sequences.empty())
    sequences = textOf(module->getAttr(exec::kCollectivesAttr));
  facts.sequenceHash = hashOf(sequences);
  facts.arenaBytes = [&](StringRef variant) { return variants[variant].arenaBytes; };
  facts.memory = [&](StringRef variant) { return memoryOf(*program, variant); };
  // The hash covers code and description; the tables follow from both.
  std::string contents = manifestJson(*program, facts);
  for (const target::ObjectCode &object : objects)
    contents.append(object.data(), object.size());
  facts.artifactHash = hashOf(contents);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> tables = buildTables(
      context, module, *program, variants,
      {target.limits.bufferAlignment, code->images, code->kernels}, manifestJson(*program, facts));
  llvm::Expected<target::ObjectCode> data = host::emitObject(*tables, *processor);
  if (!data)
    return fail(data.takeError());
  objects.push_back(std::move(*data));

  LinkOptions link;
  link.exported.push_back("shardrt_query");
  link.soname = llvm::sys::path::filename(path).str();
  llvm::Expected<std::vector<std::string>> libraries = findUserLibraries(module);
  if (!libraries)
    return fail(libraries.takeError());
  link.libraries = std::move(*libraries);
  if (llvm::Error error = linkSharedObject(objects, path, link))
    return fail(std::move(error));
  return success();
}

} // namespace

LogicalResult shardc::writeArtifact(ModuleOp module, const ArtifactOptions &options,
                                    StringRef path) {
  return Compiler(module, options, path).run();
}
