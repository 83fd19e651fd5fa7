// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shardc/SimulateProgram.h"

#include "dialects/interfaces/ModelLocation.h"
#include "passes/collectives/chunk/FunctionRules.h"
#include "passes/collectives/nodes/FunctionSplits.h"
#include "passes/specialize/AssumedSizes.h"
#include "tools/Diagnostics.h"
#include "tools/Registration.h"
#include "tools/shardc/MlirOptions.h"
#include "tools/shardc/Model.h"

#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::collectives;

static bool communicates(func::FuncOp function) {
  return function.walk([](dist::CollectiveOpInterface) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

static func::FuncOp findFunction(ModuleOp module, StringRef path, StringRef entry) {
  func::FuncOp found;
  std::string candidates;
  size_t count = 0;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal() || (entry.empty() && !communicates(function)) ||
        (!entry.empty() && function.getSymName() != entry))
      continue;
    found = function;
    candidates += (count++ == 0 ? "" : ", ") + function.getSymName().str();
  }
  if (count == 1)
    return found;
  llvm::raw_ostream &error = llvm::WithColor::error() << path << ": ";
  if (!entry.empty())
    error << "the program has no function '" << entry << "'\n";
  else if (count == 0)
    error << "no function has a collective: what `--save-stages` writes as 3-local.mlir and "
             "later has them\n";
  else
    error << "several functions have collectives, " << candidates
          << ": choose one with --entry, or take the program before dist-specialize\n";
  return {};
}

static Origin originOf(Operation *op) {
  Origin origin{getModulePath(op->getLoc()).str(), "", ""};
  if (FileLineColLoc line = getSourceLine(op->getLoc()))
    origin.location = (line.getFilename().strref() + ":" + Twine(line.getLine())).str();
  return origin;
}

std::optional<ProgramToSimulate> shardc::readProgramToSimulate(StringRef path, StringRef entry,
                                                               const cost::CostModel &model,
                                                               const Durations &durations,
                                                               bool findRegions) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  ModelDiagnostics diagnostics(&context);
  applyMlirOptions(context);
  OwningOpRef<ModuleOp> module =
      loadModel(path, /*inputs=*/{}, /*opFiles=*/{}, /*plan=*/"", &context);
  if (!module)
    return std::nullopt;
  // A program without layouts may be one of hand-written collectives.
  Stage stage = std::max(stageOf(*module), Stage::Local);
  if (failed(runPipeline(*module, PipelineOptions(), stage, stage)))
    return std::nullopt;
  func::FuncOp function = findFunction(*module, path, entry);
  if (!function)
    return std::nullopt;
  FailureOr<ProgramGraph> program = buildProgramGraph(function, model, assumedSizes(*module));
  if (failed(program))
    return std::nullopt;
  bool ok = true;
  ProgramToSimulate result;
  Graph &graph = program->graph;
  for (NodeId node = 0; node != graph.numNodes(); ++node) {
    result.origins.push_back(originOf(program->opOf[node]));
    if (graph.isCollective(node) && !model.supports(graph.kindOf(node)))
      ok = (program->opOf[node]->emitOpError("has no price in the cost model '")
                << std::string(model.name()) << "': choose another --topology",
            false);
    if (auto given = durations.find(graph.nameOf(node));
        given != durations.end() && graph.isKernel(node))
      graph.setDurationUs(node, given->second);
  }
  if (ok && findRegions)
    result.regions = findChunkRegions(graph, FunctionRules(function, *program), model);
  result.splitFacts = splitFacts(*program);
  result.graph = std::move(graph);
  return ok ? std::optional<ProgramToSimulate>(std::move(result)) : std::nullopt;
}
