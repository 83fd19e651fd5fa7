// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `shardc explain`: what is communicated, where and why.
#include "passes/cost/core/TargetDescription.h"
#include "passes/report/CollectiveReport.h"
#include "tools/Diagnostics.h"
#include "tools/Registration.h"
#include "tools/shardc/Commands.h"
#include "tools/shardc/Model.h"
#include "tools/shardc/Sizes.h"

#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
namespace cl = llvm::cl;

namespace {

cl::OptionCategory category("Options of shardc explain");
cl::SubCommand command("explain", "say what a sharded model communicates, where and why");
shardc::ModelOptions options(command, category);
shardc::CollectiveOptions collectives(command, category);
enum class Format { Text, Json };
cl::opt<Format> format("format", cl::desc("form of the report"), cl::init(Format::Text),
                       cl::values(clEnumValN(Format::Text, "text", "a table for people"),
                                  clEnumValN(Format::Json, "json", "for scripts")),
                       cl::sub(command), cl::cat(category));
cl::opt<std::string> output("o", cl::desc("where to write the report (default: standard output)"),
                            cl::value_desc("file"), cl::init("-"), cl::sub(command),
                            cl::cat(category));

void writeJson(const shardc::CollectiveReport &report, ArrayRef<shardc::ReportRemark> remarks,
               llvm::raw_ostream &os) {
  llvm::json::Object json = toJson(report);
  llvm::json::Array remarksJson;
  for (const auto &remark : remarks)
    remarksJson.push_back(llvm::json::Object{
        {"message", remark.message}, {"module", remark.module}, {"location", remark.location}});
  json["remarks"] = std::move(remarksJson);
  os << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(json)));
}

/// What the report says of the program that the collectives are optimised for.
FailureOr<shardc::CollectiveReport> report(ModuleOp module, const shardc::cost::CostModel &model) {
  FailureOr<std::vector<shardc::AssumedSize>> assumed =
      shardc::assumeSizes(module, collectives.sizes);
  if (failed(assumed))
    return failure();
  shardc::SpecializeOptions specialize;
  specialize.bind.assign(collectives.sizes.begin(), collectives.sizes.end());
  specialize.bindTypical = true;
  if (failed(shardc::specialize(module, options, specialize)))
    return failure();
  FailureOr<shardc::CollectiveReport> made = shardc::reportCollectives(module, model);
  if (succeeded(made))
    made->sizes = std::move(*assumed);
  return made;
}

int run(const char *) {
  if (failed(shardc::checkOptions(options, collectives)))
    return 1;
  DialectRegistry registry;
  shardc::registerAllDialects(registry);
  MLIRContext context(registry);
  shardc::ModelDiagnostics diagnostics(&context);
  std::string message;
  std::unique_ptr<shardc::cost::CostModel> model =
      shardc::cost::loadModel(collectives.topology, message);
  if (!model) {
    llvm::WithColor::error() << "topology: " << StringRef(message).rtrim() << "\n";
    return 1;
  }
  collectives.sizes.assign(collectives.sizeOptions.begin(), collectives.sizeOptions.end());
  OwningOpRef<ModuleOp> module = shardc::loadModel(options.model, options.inputs, &context);
  if (!module || failed(shardc::partition(*module, options, collectives)))
    return 1;
  FailureOr<shardc::CollectiveReport> made = report(*module, *model);
  if (failed(made))
    return 1;
  std::vector<shardc::ReportRemark> remarks;
  for (const auto &remark : diagnostics.remarks())
    remarks.push_back({remark.message, remark.module, remark.location});
  llvm::append_range(remarks, remarksOf(*made));
  std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(output, &message);
  if (!file) {
    llvm::WithColor::error() << message << "\n";
    return 1;
  }
  (format == Format::Json ? writeJson : shardc::printText)(*made, remarks, file->os());
  file->keep();
  return 0;
}

} // namespace

shardc::Command shardc::explainCommand() { return {&command, &category, run}; }
