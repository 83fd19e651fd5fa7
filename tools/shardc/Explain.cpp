// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `shardc explain`: what is communicated, where and why.
#include "lowering/Passes.h"
#include "passes/cost/core/TargetDescription.h"
#include "passes/report/CollectiveReport.h"
#include "passes/specialize/AssumedSizes.h"
#include "tools/Diagnostics.h"
#include "tools/Registration.h"
#include "tools/shardc/Commands.h"
#include "tools/shardc/MlirOptions.h"
#include "tools/shardc/Model.h"
#include "tools/shardc/PipelineFlags.h"

#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
namespace cl = llvm::cl;

namespace {
// Other commands have options of these names too.
namespace explain_command {

cl::OptionCategory category("Options of shardc explain");
cl::SubCommand command("explain", "say what a sharded model communicates, where and why");
shardc::ModelOptions model(command, category);
shardc::PipelineOptions options;
shardc::PipelineFlags flags(options, command, category);
enum class Format { Text, Json };
cl::opt<Format> format("format", cl::desc("form of the report"), cl::init(Format::Text),
                       cl::values(clEnumValN(Format::Text, "text", "a table for people"),
                                  clEnumValN(Format::Json, "json", "for scripts")),
                       cl::sub(command), cl::cat(category));
cl::opt<std::string> entryName("entry", cl::desc("report this entry only (default: all)"),
                               cl::value_desc("name"), cl::sub(command), cl::cat(category));
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
FailureOr<shardc::CollectiveReport> report(ModuleOp module, const shardc::cost::CostModel &cost) {
  FailureOr<shardc::Stage> from = shardc::stageToStartFrom(module, model, options);
  if (failed(from))
    return failure();
  std::vector<shardc::SizeSymbol> symbols = shardc::sizeSymbols(module);
  options.bindSizes = true;
  if (failed(shardc::runPipeline(module, options, *from, shardc::Stage::Specialized,
                                 model.saveStages)))
    return failure();
  FailureOr<shardc::CollectiveReport> made = shardc::reportCollectives(module, cost);
  if (failed(made))
    return failure();
  shardc::SymbolValues values = shardc::assumedSizes(module);
  for (const shardc::SizeSymbol &symbol : symbols) {
    std::string name = symbol.attribute.getName().str();
    made->sizes.push_back({name, values.lookup(name), symbol.where});
  }
  return made;
}

int run(const char *) {
  // A memory limit is held against planned memory, and the target says how it is planned.
  shardc::registerTargets();
  if (failed(shardc::checkOptions(model, options)))
    return 1;
  DialectRegistry registry;
  shardc::registerAllDialects(registry);
  MLIRContext context(registry);
  shardc::ModelDiagnostics diagnostics(&context);
  shardc::applyMlirOptions(context);
  std::string message;
  std::unique_ptr<shardc::cost::CostModel> cost =
      shardc::cost::loadModel(options.topology, message);
  if (!cost) {
    llvm::WithColor::error() << "topology: " << StringRef(message).rtrim() << "\n";
    return 1;
  }
  OwningOpRef<ModuleOp> module = shardc::loadModel(model, options, &context);
  if (!module)
    return 1;
  FailureOr<shardc::CollectiveReport> made = report(*module, *cost);
  if (failed(made))
    return 1;
  if (!entryName.empty() && failed(shardc::keepEntry(*made, entryName, message))) {
    llvm::WithColor::error() << message << "\n";
    return 1;
  }
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

} // namespace explain_command
} // namespace

shardc::Command shardc::explainCommand() {
  return {&explain_command::command, &explain_command::category,
          R"(  shardc explain model.pt2 --mesh tp=4 --plan plan.yaml --format text
  shardc explain model.pt2 --mesh tp=4 --plan plan.yaml --gradients loss --entry gradients
)",
          explain_command::run};
}
