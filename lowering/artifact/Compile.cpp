// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/artifact/Compile.h"

#include "dialects/aten/passes/Passes.h"
#include "dialects/exec/Exec.h"
#include "lowering/artifact/Link.h"
#include "lowering/artifact/MemoryLimit.h"
#include "lowering/artifact/Tables.h"
#include "lowering/host/HostCode.h"
#include "lowering/host/Passes.h"
#include "lowering/linalg/Passes.h"
#include "lowering/memory/Passes.h"
#include "lowering/target/Passes.h"
#include "passes/collectives/verify/Sequence.h"
#include "passes/verify/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA1.h"

#include <set>

using namespace mlir;
using namespace shardc;
using namespace shardc::artifact;

void shardc::buildPlanMemoryPipeline(OpPassManager &pm, StringRef target,
                                     memory::BucketForm bucketForm,
                                     ArrayRef<std::string> memorySizes) {
  pm.addPass(target::createSetTarget({target.str()}));
  pm.addNestedPass<func::FuncOp>(aten::createAtenExpandConvolutions());
  pm.addNestedPass<func::FuncOp>(createDecomposeForKernels());
  pm.addPass(createFormKernels());
  pm.addPass(memory::createAssignBuffers());
  pm.addPass(memory::createVerifyBuffers());
  memory::PackBucketsOptions buckets;
  buckets.form = bucketForm;
  pm.addPass(memory::createPackBuckets(buckets));
  pm.addPass(memory::createMergeKernels());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(memory::createPlanArena());
  memory::AccountMemoryOptions account;
  account.sizes.assign(memorySizes.begin(), memorySizes.end());
  pm.addPass(memory::createVerifyBuffers());
  pm.addPass(memory::createVerifySequence());
  pm.addPass(memory::createAccountMemory(account));
  pm.addPass(createVerifyKernels());
  pm.addPass(createVerifyStage({Stage::Planned}));
}

void shardc::buildLowerPlannedPipeline(OpPassManager &pm) {
  pm.addPass(target::createLowerToTarget());
  pm.addPass(host::createEmitProgram());
  pm.addPass(createVerifyStage({Stage::Lowered}));
}

namespace {
struct LowerOptions : PassPipelineOptions<LowerOptions> {
  Option<std::string> target{*this, "target", llvm::cl::desc("What to compile for"),
                             llvm::cl::init("cpu")};
};
} // namespace

void shardc::registerLowerPipeline() {
  PassPipelineRegistration<LowerOptions>(
      "shardc-plan-memory", "local or scheduled -> planned: kernels, and buffers in an arena",
      [](OpPassManager &pm, const LowerOptions &options) {
        buildPlanMemoryPipeline(pm, options.target);
      });
  PassPipelineRegistration<>("shardc-lower-planned", "planned -> lowered: LLVM's dialect",
                             buildLowerPlannedPipeline);
  PassPipelineRegistration<LowerOptions>(
      "shardc-lower", "local or scheduled -> lowered: kernels, memory, LLVM's dialect",
      [](OpPassManager &pm, const LowerOptions &options) {
        buildPlanMemoryPipeline(pm, options.target);
        buildLowerPlannedPipeline(pm);
      });
}

namespace {

class Compiler {
public:
  Compiler(ModuleOp module, const CompileOptions &options, StringRef path)
      : module(module), options(options), path(path) {}

  LogicalResult run();

private:
  LogicalResult fail(llvm::Error error) {
    emitError(module.getLoc()) << llvm::toString(std::move(error));
    return failure();
  }
  LogicalResult lower();
  void collectFacts();

  ModuleOp module;
  const CompileOptions &options;
  StringRef path;
  llvm::StringMap<VariantFacts> variants;
  bool usesBlas = false;
};

LogicalResult Compiler::lower() {
  PassManager plan(module.getContext());
  buildPlanMemoryPipeline(plan, options.target, options.bucketForm, options.memorySizes);
  if (failed(plan.run(module)))
    return failure();
  if (options.onStage)
    options.onStage(module, "6-planned");
  PassManager lower(module.getContext());
  buildLowerPlannedPipeline(lower);
  if (failed(lower.run(module)))
    return failure();
  if (options.onStage)
    options.onStage(module, "7-lowered");
  return success();
}

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

/// The hashes of the functions' collective sequences, from the form that all ranks share; empty
/// where nobody has verified them. (Variants of one function have one.)
std::string verifiedSequences(ModuleOp module) {
  std::set<std::string> hashes;
  for (auto function : module.getOps<func::FuncOp>())
    if (auto hash = function->getAttrOfType<StringAttr>(kSequenceHashAttr))
      hashes.insert(hash.str());
  return llvm::join(hashes, " ");
}

LogicalResult Compiler::run() {
  FailureOr<ProgramDescription> program = describeProgram(module, options.name, options.constants);
  if (failed(program))
    return failure();
  if (options.predicted)
    for (EntryDescription &entry : program->entries)
      entry.predicted = options.predicted(entry.name);
  std::string sequences = verifiedSequences(module);
  if (failed(lower()))
    return failure();
  collectFacts();
  if (failed(checkMemoryLimit(module, *program, options.memoryLimit, options.memorySizes)))
    return failure();
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
  llvm::Expected<std::vector<target::ObjectCode>> objects =
      backend->serialize(module, target, options.name);
  if (!objects)
    return fail(objects.takeError());

  CompiledFacts facts;
  facts.target = std::move(*described);
  facts.target["kind"] = target.kind;
  facts.tool = options.tool;
  facts.usesBlas = usesBlas;
  if (sequences.empty())
    sequences = textOf(module->getAttr(exec::kCollectivesAttr));
  facts.sequenceHash = hashOf(sequences);
  facts.arenaBytes = [&](StringRef variant) { return variants[variant].arenaBytes; };
  // The hash covers code and description; the tables follow from both.
  std::string contents = manifestJson(*program, facts);
  for (const target::ObjectCode &object : *objects)
    contents.append(object.data(), object.size());
  facts.artifactHash = hashOf(contents);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> tables =
      buildTables(context, module, *program, variants, target.limits.bufferAlignment,
                  manifestJson(*program, facts));
  llvm::Expected<target::ObjectCode> data = host::emitObject(*tables, *processor);
  if (!data)
    return fail(data.takeError());
  objects->push_back(std::move(*data));

  LinkOptions link;
  link.exported.push_back("shardrt_query");
  link.soname = llvm::sys::path::filename(path).str();
  if (llvm::Error error = linkSharedObject(*objects, path, link))
    return fail(std::move(error));
  return success();
}

} // namespace

LogicalResult shardc::compileToSharedObject(ModuleOp module, const CompileOptions &options,
                                            StringRef path) {
  return Compiler(module, options, path).run();
}
