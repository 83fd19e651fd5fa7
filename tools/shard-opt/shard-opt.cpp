// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// shard-opt: reads a model or a piece of IR, runs passes, prints IR. As mlir-opt, with our dialects
// and passes, and with a front door for model files (importers/Importer.h).

#include "dialects/dist/Dist.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/interfaces/PassStatistic.h"
#include "importers/Importer.h"
#include "importers/plan/Plan.h"
#include "lowering/Passes.h"
#include "passes/Passes.h"
#include "pipeline/Pipeline.h"
#include "tools/CustomOps.h"
#include "tools/Registration.h"
#ifdef SHARDC_TEST_PASSES
#include "test/lib/PrintProgramJson.h"
#include "test/lib/PrintShardingRules.h"
#endif

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

static llvm::cl::extrahelp examples(R"(
EXAMPLES:
  shard-opt model.pt2                       print the imported model
  shard-opt --canonicalize --cse FILE.mlir  run two passes
  shard-opt --dist-verify-stage=local FILE  check that FILE has the form that the stage "local" promises
  shard-opt model.pt2 --mesh=dp=2,tp=4 --dist-apply-plan=place=module:up=colwise
                                            give the mesh to all passes that need one
  shard-opt --emit-bytecode FILE -o F.mlirbc
                                            write MLIR bytecode

FILE may be MLIR text (.mlir), MLIR bytecode (.mlirbc), or a model that an importer reads
(.pt2, .pt); the content decides, not the name. "-" is standard input.
)");

static llvm::cl::opt<bool> passStatistics(
    "pass-statistics",
    llvm::cl::desc("Print what passes counted (--mlir-pass-statistics does so too)"));

static llvm::cl::opt<std::string> groups(
    "groups", llvm::cl::value_desc("file"),
    llvm::cl::desc("JSON file with the ranks of the process groups that an imported graph names "
                   "({\"name\": [0, 1]}), or \"consecutive\""));

static llvm::cl::list<std::string>
    inputs("input", llvm::cl::value_desc("spec"),
           llvm::cl::desc("Shape and element type of an input of a TorchScript model, by name or "
                          "position: x=8x64xf32"));

static llvm::cl::list<std::string>
    opFiles("ops", llvm::cl::value_desc("file"),
            llvm::cl::desc("File whose section 'ops' registers operators (docs/custom-ops.md)"));

static llvm::cl::opt<std::string>
    mesh("mesh", llvm::cl::value_desc("axes"),
         llvm::cl::desc("Mesh of the module (its dist.mesh), outermost axis first, e.g. dp=2,tp=4; "
                        "replaces the one that the module has"));

namespace {
/// Puts the mesh of `--mesh` onto the module, then runs what was asked for. (A pipeline that is
/// given as text replaces whatever is in a pass manager, so this cannot just stand before it.)
struct SetMeshPass : PassWrapper<SetMeshPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SetMeshPass)

  explicit SetMeshPass(const OpPassManager &asked) : asked(asked) {}

  StringRef getName() const override { return "shard-opt --mesh"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<shardc::dist::DistDialect>();
    asked.getDependentDialects(registry);
  }
  void runOnOperation() override {
    std::vector<std::string> errors;
    shardc::Mesh value;
    shardc::plan::parseMesh(mesh, "--mesh", value, errors);
    for (const std::string &error : errors)
      emitError(UnknownLoc::get(&getContext())) << error;
    if (!errors.empty())
      return signalPassFailure();
    getOperation()->setAttr(shardc::dist::kMeshAttr,
                            shardc::dist::MeshAttr::get(&getContext(), value));
    if (failed(runPipeline(asked, getOperation())))
      signalPassFailure();
  }

  OpPassManager asked;
};
} // namespace

/// Whether an option of MLIR's is on the command line.
static bool isGiven(StringRef name) {
  llvm::cl::Option *option = llvm::cl::getRegisteredOptions().lookup(name);
  return option && option->getNumOccurrences() != 0;
}

static void printVersion(raw_ostream &os) {
  os << "shard-opt " SHARDC_VERSION " (LLVM " LLVM_VERSION_STRING ")\n";
}

/// Runs the importer and hands its module on as bytecode: from there a model file goes through the
/// same driver as any other input, with all of its options.
static std::unique_ptr<llvm::MemoryBuffer> importAsBytecode(const shardc::Importer &importer,
                                                            llvm::MemoryBufferRef file,
                                                            const DialectRegistry &registry) {
  auto ops = shardc::loadCustomOps(std::vector<std::string>(opFiles.begin(), opFiles.end()));
  if (!ops)
    return nullptr;
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module = importer.import(
      file, {groups, std::vector<std::string>(inputs.begin(), inputs.end()), std::move(*ops)},
      &context);
  if (!module)
    return nullptr;
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  if (failed(writeBytecodeToFile(*module, stream)))
    return nullptr;
  return llvm::MemoryBuffer::getMemBufferCopy(bytes, file.getBufferIdentifier());
}

static LogicalResult run(StringRef inputFile, StringRef outputFile, DialectRegistry &registry) {
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects()) {
    llvm::interleave(registry.getDialectNames(), llvm::outs(), "\n");
    llvm::outs() << "\n";
    return success();
  }
  if (config.shouldListPasses()) {
    printRegisteredPasses();
    return success();
  }
  if (mesh.getNumOccurrences() > 0)
    config.setPassPipelineSetupFn([passes = config](PassManager &manager) -> LogicalResult {
      if (failed(passes.setupPassPipeline(manager)))
        return failure();
      OpPassManager asked = manager;
      manager.clear();
      manager.addPass(std::make_unique<SetMeshPass>(asked));
      return success();
    });
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(inputFile, &message);
  if (!file) {
    llvm::errs() << message << "\n";
    return failure();
  }
  if (const shardc::Importer *importer = shardc::findImporter(shardc::allImporters(), *file)) {
    file = importAsBytecode(*importer, *file, registry);
    if (!file)
      return failure();
  }
  std::unique_ptr<llvm::ToolOutputFile> output = openOutputFile(outputFile, &message);
  if (!output) {
    llvm::errs() << message << "\n";
    return failure();
  }
  if (failed(MlirOptMain(output->os(), std::move(file), registry, config)))
    return failure();
  output->keep();
  return success();
}

/// Loads what `--load-pass-plugin=FILE` names, and takes those arguments out. The driver would load
/// them while it parses the command line: too late for the passes to have flags of their own.
static LogicalResult loadPassPlugins(SmallVectorImpl<char *> &arguments) {
  LogicalResult result = success();
  llvm::erase_if(arguments, [&](char *argument) {
    StringRef path(argument);
    if (!path.consume_front("--load-pass-plugin=") && !path.consume_front("-load-pass-plugin="))
      return false;
    llvm::Expected<PassPlugin> plugin = PassPlugin::load(path.str());
    if (plugin) {
      plugin->registerPassRegistryCallbacks();
    } else {
      llvm::errs() << "cannot load pass plugin '" << path
                   << "': " << llvm::toString(plugin.takeError()) << "\n";
      result = failure();
    }
    return true;
  });
  return result;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::cl::SetVersionPrinter(printVersion);
  mlir::registerTransformsPasses();
  shardc::registerAllPasses();
  shardc::registerTargets();
  shardc::registerLoweringPasses();
  shardc::registerPipelines();
#ifdef SHARDC_TEST_PASSES
  shardc::registerPrintProgramJsonPass();
  shardc::registerPrintShardingRulesPass();
#endif
  DialectRegistry registry;
  shardc::registerAllDialects(registry);
  SmallVector<char *> arguments(argv, argv + argc);
  if (failed(loadPassPlugins(arguments)))
    return 1;
  auto [inputFile, outputFile] = registerAndParseCLIOptions(arguments.size(), arguments.data(),
                                                            "shardc optimizer driver\n", registry);
  LogicalResult result = run(inputFile, outputFile, registry);
  if (passStatistics || isGiven("mlir-pass-statistics"))
    shardc::PassStatistics::get().print(llvm::errs());
  return asMainReturnCode(result);
}
