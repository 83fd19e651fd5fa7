// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `shardc explain`: what is communicated, where and why.
#include "passes/report/CollectiveReport.h"
#include "tools/Diagnostics.h"
#include "tools/Registration.h"
#include "tools/shardc/Commands.h"
#include "tools/shardc/Model.h"

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

void writeJson(const shardc::CollectiveReport &report,
               ArrayRef<shardc::ModelDiagnostics::Remark> remarks, llvm::raw_ostream &os) {
  llvm::json::Object json = toJson(report);
  llvm::json::Array remarksJson;
  for (const auto &remark : remarks)
    remarksJson.push_back(llvm::json::Object{
        {"message", remark.message}, {"module", remark.module}, {"location", remark.location}});
  json["remarks"] = std::move(remarksJson);
  os << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(json)));
}

void writeText(const shardc::CollectiveReport &report,
               ArrayRef<shardc::ModelDiagnostics::Remark> remarks, llvm::raw_ostream &os) {
  printText(report, os);
  if (!remarks.empty())
    os << "\nremarks:\n";
  for (const auto &remark : remarks)
    os << "  " << remark.message << (remark.location.empty() ? "" : "  [" + remark.location + "]")
       << "\n";
}

int run(const char *) {
  DialectRegistry registry;
  shardc::registerAllDialects(registry);
  shardc::registerAllImporters();
  MLIRContext context(registry);
  shardc::ModelDiagnostics diagnostics(&context);
  OwningOpRef<ModuleOp> module = shardc::loadModel(options.model, &context);
  if (!module || failed(shardc::partition(*module, options, collectives)) ||
      failed(shardc::specialize(*module, options)))
    return 1;
  std::string message;
  std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(output, &message);
  if (!file) {
    llvm::WithColor::error() << message << "\n";
    return 1;
  }
  shardc::CollectiveReport report = shardc::reportCollectives(*module);
  std::vector<shardc::ModelDiagnostics::Remark> remarks = diagnostics.remarks();
  for (shardc::AloneRemark &remark : remarksOf(report))
    remarks.push_back({remark.message, remark.module, remark.location});
  (format == Format::Json ? writeJson : writeText)(report, remarks, file->os());
  file->keep();
  return 0;
}

} // namespace

shardc::Command shardc::explainCommand() { return {&command, &category, run}; }
