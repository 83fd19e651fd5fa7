// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `shardc compile`: a model, a mesh and a plan to one shared object for every rank.
#include "lowering/artifact/Compile.h"
#include "lowering/Passes.h"
#include "lowering/target/Backend.h"

#include "support/ByteSize.h"
#include "support/archive/TensorStore.h"
#include "tools/Diagnostics.h"
#include "tools/Registration.h"
#include "tools/shardc/Commands.h"
#include "tools/shardc/Constants.h"
#include "tools/shardc/Model.h"
#include "tools/shardc/Sizes.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
namespace cl = llvm::cl;

namespace {

cl::OptionCategory category("Options of shardc compile");
cl::SubCommand command("compile", "make one shared object for all ranks of a mesh");
shardc::ModelOptions options(command, category);
shardc::CollectiveOptions collectives(command, category);
cl::opt<std::string> output("o", cl::desc("the shared object to write"), cl::value_desc("file"),
                            cl::Required, cl::sub(command), cl::cat(category));
cl::opt<std::string> target("target",
                            cl::desc("what to compile for: cpu (this machine), or cpu:NAME with a "
                                     "processor name of LLVM, e.g. cpu:x86-64-v3"),
                            cl::value_desc("target"), cl::init("cpu"), cl::sub(command),
                            cl::cat(category));
cl::opt<shardc::memory::BucketForm> bucketForm(
    "bucket-form", cl::desc("how collectives of several tensors are handed to the communicator"),
    cl::values(clEnumValN(shardc::memory::BucketForm::Auto, "auto", "whichever costs less"),
               clEnumValN(shardc::memory::BucketForm::Grouped, "grouped", "as a group of tensors"),
               clEnumValN(shardc::memory::BucketForm::Packed, "packed",
                          "as one buffer, wherever that is possible")),
    cl::init(shardc::memory::BucketForm::Auto), cl::sub(command), cl::cat(category));
cl::opt<std::string> memoryLimit(
    "memory-limit",
    cl::desc("refuse a program that needs more memory on a rank, and say what takes it; bytes, or "
             "with a unit, e.g. 800MiB or 2GB. Dynamic sizes are as large as they may be, or as "
             "--size says"),
    cl::value_desc("bytes"), cl::sub(command), cl::cat(category));
cl::extrahelp examples(R"(
EXAMPLES:
  shardc compile model.pt2 --mesh dp=2,tp=2 --plan plan.yaml -o model.so
  shardc compile model.pt2 --mesh tp=4 --place 'module:*.q_proj=colwise' -o model.so
  shardc compile model.pt2 --mesh tp=4 --plan plan.yaml --save-stages stages -o model.so
)");

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

int run(const char *) {
  std::vector<std::string> problems;
  shardc::registerTargets();
  if (auto resolved = shardc::target::resolveTarget(target); !resolved)
    problems.push_back("--target: " + llvm::toString(resolved.takeError()));
  std::optional<uint64_t> limit = 0;
  if (!memoryLimit.empty() && !((limit = shardc::parseByteSize(memoryLimit)) && *limit != 0))
    problems.push_back("--memory-limit is a number of bytes, e.g. 2GiB, not '" + memoryLimit + "'");
  if (std::string why = whyNotWritable(); !why.empty())
    problems.push_back("cannot write '" + output + "': " + why);
  if (failed(shardc::checkOptions(options, collectives, problems)))
    return 1;
  DialectRegistry registry;
  shardc::registerAllDialects(registry);
  MLIRContext context(registry);
  shardc::ModelDiagnostics diagnostics(&context);
  OwningOpRef<ModuleOp> module = shardc::loadModel(options.model, options.inputs, &context);
  if (!module)
    return 1;
  collectives.memoryLimit = *limit;
  collectives.flat = bucketForm != shardc::memory::BucketForm::Packed;
  collectives.sizes.assign(collectives.sizeOptions.begin(), collectives.sizeOptions.end());
  if (failed(shardc::assumeSizes(*module, collectives.sizes)))
    return 1;
  if (*limit != 0) {
    FailureOr<std::vector<std::string>> largest = shardc::largestSizes(*module, collectives.sizes);
    if (failed(largest))
      return 1;
    collectives.sizes = std::move(*largest);
  }
  shardc::EmbeddedConstants constants;
  if (failed(constants.open(options.model, *module)) ||
      failed(shardc::partition(*module, options, collectives)))
    return 1;
  llvm::StringMap<shardc::Prediction> predictions = shardc::predictFunctions(*module, collectives);
  if (failed(shardc::specialize(*module, options)))
    return 1;
  shardc::CompileOptions compile;
  compile.predicted = [&](StringRef entry) -> std::optional<shardc::Prediction> {
    auto found = predictions.find(entry);
    return found == predictions.end() ? std::nullopt : std::optional(found->second);
  };
  compile.target = target;
  compile.memoryLimit = *limit;
  compile.memorySizes = collectives.sizes;
  compile.bucketForm = bucketForm;
  compile.name = llvm::sys::path::stem(options.model).str();
  compile.tool = "shardc " SHARDC_VERSION;
  compile.constants = [&](StringRef name) { return constants.find(name); };
  bool saved = true;
  compile.onStage = [&](ModuleOp lowered, StringRef name) {
    saved &= succeeded(shardc::saveStage(lowered, options, name));
  };
  // A copy: lld, as a library, resets the options of the process.
  std::string path = output;
  if (failed(shardc::compileToSharedObject(*module, compile, path)) || !saved)
    return 1;
  return 0;
}

} // namespace

shardc::Command shardc::compileCommand() { return {&command, &category, run}; }
