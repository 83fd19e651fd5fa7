// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `shardc compile`: a model, a mesh and a plan to one shared object for every rank.
#include "lowering/artifact/Compile.h"
#include "lowering/Passes.h"
#include "lowering/target/Backend.h"

#include "support/archive/TensorStore.h"
#include "tools/Diagnostics.h"
#include "tools/Registration.h"
#include "tools/shardc/Commands.h"
#include "tools/shardc/Constants.h"
#include "tools/shardc/MlirOptions.h"
#include "tools/shardc/Model.h"
#include "tools/shardc/PipelineFlags.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
namespace cl = llvm::cl;

namespace {
// Other commands have options of these names too.
namespace compile_command {

cl::OptionCategory category("Options of shardc compile");
cl::SubCommand command("compile", "make one shared object for all ranks of a mesh");
shardc::ModelOptions model(command, category);
shardc::PipelineOptions options;
shardc::PipelineFlags flags(options, command, category);
cl::opt<std::string> output("o", cl::desc("the shared object to write"), cl::value_desc("file"),
                            cl::Required, cl::sub(command), cl::cat(category));
constexpr llvm::StringLiteral examples =
    R"(  shardc compile model.pt2 --mesh dp=2,tp=2 --plan plan.yaml -o model.so
  shardc compile model.pt2 --mesh tp=4 --place 'module:*.q_proj=colwise' --place 'module:*.o_proj=rowwise' -o model.so
  shardc compile model.pt2 --mesh tp=4 --plan plan.yaml --save-stages stages -o model.so
  shardc compile model.pt2 --mesh tp=4 --plan plan.yaml --mlir-print-ir-after=dist-place -o model.so
)";

/// Why the artifact cannot be written, which is found out before anything takes time; empty if it
/// can.
std::string whyNotWritable() {
  StringRef folder = llvm::sys::path::parent_path(output);
  if (!folder.empty() && !llvm::sys::fs::is_directory(folder))
    return ("there is no folder '" + folder + "'").str();
  if (llvm::sys::fs::exists(output) && !llvm::sys::fs::is_regular_file(output))
    return "it is not a regular file";
  if (std::error_code error =
          llvm::sys::fs::access(folder.empty() ? "." : folder, llvm::sys::fs::AccessMode::Write))
    return error.message();
  return "";
}

/// What is wrong with the target, or missing here to write code for it; empty if nothing is.
std::string whyNoTarget() {
  auto resolved = shardc::target::resolveTarget(options.target.getValue());
  if (!resolved)
    return llvm::toString(resolved.takeError());
  return llvm::toString(shardc::target::findBackend(resolved->kind)->checkTools(*resolved));
}

int run(const char *) {
  std::vector<std::string> problems;
  shardc::registerTargets();
  if (std::string why = whyNoTarget(); !why.empty())
    problems.push_back("--target: " + why);
  if (std::string why = whyNotWritable(); !why.empty())
    problems.push_back("cannot write '" + output + "': " + why);
  if (failed(shardc::checkOptions(model, options, problems)))
    return 1;
  DialectRegistry registry;
  shardc::registerAllDialects(registry);
  MLIRContext context(registry);
  shardc::ModelDiagnostics diagnostics(&context);
  shardc::applyMlirOptions(context);
  OwningOpRef<ModuleOp> module = shardc::loadModel(model, options, &context);
  if (!module)
    return 1;
  FailureOr<shardc::Stage> from = shardc::stageToStartFrom(*module, model, options);
  shardc::EmbeddedConstants constants;
  if (failed(from) || failed(constants.open(model.model, *module)) ||
      failed(
          shardc::runPipeline(*module, options, *from, shardc::Stage::Lowered, model.saveStages)))
    return 1;
  shardc::ArtifactOptions artifact;
  artifact.name = llvm::sys::path::stem(model.model).str();
  artifact.tool = "shardc " SHARDC_VERSION;
  artifact.constants = [&](StringRef name) { return constants.find(name); };
  // A copy: lld, as a library, resets the options of the process.
  std::string path = output;
  return failed(shardc::writeArtifact(*module, artifact, path)) ? 1 : 0;
}

} // namespace compile_command
} // namespace

shardc::Command shardc::compileCommand() {
  return {&compile_command::command, &compile_command::category, compile_command::examples,
          compile_command::run};
}
