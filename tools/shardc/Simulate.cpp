// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `shardc simulate`: what a graph that comes with collectives takes, and what optimising them would
// bring. It works on the plain graph; an exported one is read without IR.
#include "passes/collectives/exported/Contradictions.h"
#include "passes/collectives/exported/FromProgram.h"
#include "passes/collectives/exported/Origins.h"
#include "passes/collectives/exported/ProgramRules.h"
#include "passes/collectives/exported/ProgramSplits.h"
#include "passes/cost/core/ScaledModel.h"
#include "passes/cost/core/SimV1.h"
#include "passes/cost/core/TargetDescription.h"
#include "support/ByteSize.h"
#include "support/MappedFile.h"
#include "support/archive/Pt2Archive.h"
#include "tools/shardc/Commands.h"
#include "tools/shardc/PipelineFlags.h"
#include "tools/shardc/SimulateMoves.h"
#include "tools/shardc/SimulatePlan.h"
#include "tools/shardc/SimulateProgram.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <iostream>

using namespace shardc::collectives;
using llvm::StringRef;
namespace cl = llvm::cl;

namespace {
// Other commands have options of these names too.
namespace simulate_command {

cl::OptionCategory category("Options of shardc simulate");
cl::SubCommand command("simulate", "simulate and optimise a graph that comes with collectives");

// A flag or a text option of this subcommand.
template <typename T> struct Option : cl::opt<T> {
  template <typename... More>
  Option(StringRef name, const char *help, const More &...more)
      : cl::opt<T>(name, cl::desc(help), cl::sub(command), cl::cat(category), more...) {}
};

cl::opt<std::string> model(cl::Positional, cl::Required, cl::desc("MODEL.pt2|PROGRAM.mlir"),
                           cl::sub(command), cl::cat(category));
Option<std::string> entry("entry",
                          "the function of a .mlir program (default: the only one that has "
                          "collectives)",
                          cl::value_desc("name"));
Option<std::string>
    groups("groups",
           "JSON file with the process groups that the graph names: {\"dp\": [0, 1, ...]}, "
           "{\"tp\": [[0, 2], [1, 3]]}, or {\"ep\": 8} where only the size is known (default: the "
           "sizes that the graph says)",
           cl::value_desc("file"));
Option<std::string>
    durations("durations",
              "JSON file with microseconds by node, {\"mm\": 1449.7}; other kernels "
              "are priced by their arithmetic and the bytes they move",
              cl::value_desc("file"));
// What `compile` optimises by, too.
shardc::StageOptions<shardc::MemoryOptions, shardc::SearchOptions> options;
shardc::PipelineFlags flags(options, command, category);
Option<bool> asIs("as-is", "simulate the graph in its own order (the default)");
Option<bool> optimizeFlag("optimize",
                          "bucket and schedule the collectives, and simulate the result");
Option<std::string> caps("caps", "the same as --bucket-caps", cl::value_desc("MiB"),
                         cl::callback([](const std::string &text) { options.bucketCaps = text; }));
Option<double> network("network",
                       "how many times as long collectives take as the cost model says, e.g. 1.5: "
                       "what is simulated and planned for is that network",
                       cl::value_desc("factor"), cl::init(1));
Option<bool> noBucket("no-bucket", "with --optimize: merge nothing, only reorder");
Option<bool> noSchedule("no-schedule",
                        "with --optimize: keep the order of kernels, only fill buckets");
Option<bool>
    flat("flat",
         "with --optimize or --plan: operands of buckets are stored side by side and results "
         "are used in place, so that packing costs nothing (the default for a program in "
         "MLIR, as it is compiled)");
Option<std::string> planFile("plan",
                             "JSON file with a plan of the graph, as --emit writes it: it is "
                             "checked and simulated; with --optimize both are compared",
                             cl::value_desc("file"));
Option<std::string> emit("emit",
                         "write the order and the buckets to this file, as JSON; groups are "
                         "then told apart by name",
                         cl::value_desc("file"));
Option<std::string> trace("trace",
                          "write the timelines of all streams, before and after, as a Chrome "
                          "trace (chrome://tracing, ui.perfetto.dev)",
                          cl::value_desc("file"));
enum class Format { Text, Json };
Option<Format> format("format", "form of the report", cl::init(Format::Text),
                      cl::values(clEnumValN(Format::Text, "text", "tables for people"),
                                 clEnumValN(Format::Json, "json", "for scripts")));
Option<std::string> output("o", "where to write the report (default: standard output)",
                           cl::value_desc("file"), cl::init("-"));
/// What --chunk-collectives says; it has been checked.
ChunkMode chunkMode() {
  std::string message;
  return ChunkMode::parse(options.chunkCollectives.getValue(), message).value_or(ChunkMode{});
}

/// What --split-nodes says; it has been checked.
SplitMode splitMode() {
  std::string message;
  return parseSplitMode(options.splitNodes.getValue(), message).value_or(SplitMode::Off);
}

bool error(const llvm::Twine &message) {
  llvm::WithColor::error() << message << "\n";
  return false;
}

std::shared_ptr<const shardc::MappedFile> openFile(StringRef path) {
  std::string message;
  auto file = shardc::MappedFile::open(path.str(), message);
  if (!file)
    error(message);
  return file;
}

std::string_view textOf(const shardc::MappedFile &file) {
  return {reinterpret_cast<const char *>(file.bytes().data()), file.bytes().size()};
}

/// All that a simulation starts from.
struct Input {
  std::unique_ptr<shardc::cost::CostModel> costModel;
  std::optional<Graph> graph;
  std::vector<Origin> origins;
  /// What can be taken apart, if asked for.
  std::vector<std::vector<ChunkRegion>> regions;
  SplitFacts splitFacts;
  Durations durations;
  /// What was given, of `graph`.
  std::optional<Plan> plan;
  /// In MLIR, not an exported graph.
  bool isProgram = false;
  /// Buckets need no packing.
  bool flat = false;
};

bool readDurations(Durations &kernelDurations) {
  if (durations.empty())
    return true;
  auto file = openFile(durations);
  if (!file)
    return false;
  std::string message;
  auto parsed = parseDurations(textOf(*file), message);
  if (!parsed)
    return error(durations + ": " + message);
  kernelDurations = std::move(*parsed);
  return true;
}

/// Those of the file, if there is one.
bool readGroups(std::optional<ProcessGroups> &processGroups) {
  if (groups.empty() || groups == "consecutive")
    return true;
  auto file = openFile(groups);
  std::string message;
  if (file && !(processGroups = parseGroups(textOf(*file), message,
                                            std::string_view(llvm::sys::path::stem(model)))))
    error(groups + ": " + message);
  return processGroups.has_value();
}

/// The program of an archive. What it is read from is given up on the way: for a large graph text
/// and tokens take more memory than everything after them.
std::optional<shardc::torch_export::ExportedProgram>
readProgram(std::shared_ptr<const shardc::MappedFile> file) {
  std::string message;
  std::optional<shardc::JsonDocument> document;
  auto archive = shardc::Pt2Archive::read(file->bytes(), message);
  if (!archive) {
    error(model + ": no torch.export archive (.pt2): " + message);
    return std::nullopt;
  }
  if (auto json = archive->programJson(message))
    document = shardc::JsonDocument::parse(*json, message);
  archive.reset();
  file.reset();
  auto program = document ? shardc::torch_export::parseProgram(*document, message) : std::nullopt;
  if (!program)
    error(model + ": " + message);
  return program;
}

/// By its content; what is called an archive and is none is reported as such.
bool isArchive(const shardc::MappedFile &file) {
  return textOf(file).starts_with("PK") || StringRef(model).ends_with(".pt2");
}

bool loadProgram(Input &input, bool ok) {
  if (!groups.empty())
    ok = error("--groups is for exported graphs: a program in MLIR says who its groups are");
  auto program = ok ? shardc::readProgramToSimulate(model, entry, *input.costModel, input.durations,
                                                    chunkMode().enabled)
                    : std::nullopt;
  if (!program)
    return false;
  input.graph = std::move(program->graph);
  input.origins = std::move(program->origins);
  input.regions = std::move(program->regions);
  input.splitFacts = std::move(program->splitFacts);
  return true;
}

bool loadArchive(Input &input, std::shared_ptr<const shardc::MappedFile> file, bool ok) {
  if (!entry.empty())
    ok = error("--entry is for programs in MLIR: an exported graph is one function");
  std::optional<ProcessGroups> processGroups;
  bool groupsOk = readGroups(processGroups);
  auto program = readProgram(std::move(file));
  if (!program || !groupsOk)
    return false;
  bool given = processGroups.has_value();
  if (!given)
    processGroups = groupsInProgram(*program);
  // What is wrong with the graph does not depend on the prices.
  shardc::cost::SimV1 anyModel;
  std::vector<std::string> errors;
  input.graph = graphFromProgram(*program, *processGroups, input.durations,
                                 input.costModel ? *input.costModel : anyModel, errors,
                                 given ? "in the groups file" : "at an earlier node");
  for (const std::string &mistake : errors)
    error(model + ": " + mistake);
  if (!input.graph)
    return false;
  input.origins = originsOf(*program);
  if (chunkMode().enabled)
    input.regions =
        findChunkRegions(*input.graph, ProgramRules(*program, *input.graph), *input.costModel);
  if (splitMode() != SplitMode::Off)
    input.splitFacts = splitFacts(*program, *input.graph);
  return ok;
}

bool load(Input &input) {
  std::string message;
  auto file = openFile(model);
  // What a program in MLIR is simulated by is what it is compiled by.
  input.isProgram = file && !isArchive(*file);
  std::string name = options.topology;
  if (options.topology.getNumOccurrences() == 0 && (!input.isProgram || !durations.empty()))
    name = durations.empty() ? "h100-64" : "sim-v1";
  input.costModel = shardc::cost::loadModel(name, message);
  bool ok = input.costModel || error(StringRef(message).trim());
  if (std::string missing = input.costModel ? describeMissingNodes(*input.costModel) : "";
      splitMode() != SplitMode::Off && !missing.empty())
    ok = error("--split-nodes: " + missing);
  if (!(network > 0 && std::isfinite(network)))
    ok = error("--network is a positive factor, e.g. 1.5");
  else if (ok && network.getNumOccurrences() != 0)
    input.costModel =
        std::make_unique<shardc::cost::ScaledModel>(std::move(input.costModel), network);
  if (input.costModel && chunkMode().ring &&
      !input.costModel->supports(shardc::CollectiveKind::Permute))
    ok = error("--chunk-collectives: " + describeNoRings(*input.costModel));
  ok &= readDurations(input.durations);
  if (!file) {
    std::optional<ProcessGroups> unused;
    readGroups(unused);
    if (!planFile.empty())
      shardc::readPlan(planFile, nullptr);
    return false;
  }
  ok = input.isProgram ? loadProgram(input, ok) : loadArchive(input, std::move(file), ok);
  if (input.graph)
    for (const std::string &mistake : contradictions(*input.graph, input.durations))
      ok = error(durations + ": " + mistake);
  if (!planFile.empty())
    input.plan = shardc::readPlan(planFile, input.graph ? &*input.graph : nullptr);
  return ok && (planFile.empty() || input.plan);
}

/// What --optimize may do, from the options; `peak` is what the graph takes.
bool optimizeOptions(const Input &input, uint64_t peak, OptimizeOptions &result) {
  bool ok = true;
  if (!options.memoryLimit.empty() &&
      !(result.memoryLimit = shardc::parseByteSize(options.memoryLimit.getValue(), peak)))
    ok = error("'" + options.memoryLimit +
               "' is no size: give bytes (40000000000), 40GiB, or a part of what the graph takes "
               "(105%)");
  std::string message;
  if (std::optional<BucketCaps> parsed = BucketCaps::parse(options.bucketCaps.getValue(), message))
    result.buckets.caps = *parsed;
  else
    ok = error((caps.getNumOccurrences() ? "--caps: " : "--bucket-caps: ") + message);
  result.buckets.mixedDtype = options.mixedDtype;
  result.buckets.groupsByName = !emit.empty();
  result.bucket = options.bucket && !noBucket;
  result.schedule = options.reorder && !noSchedule;
  result.policy = options.policy;
  result.robust = options.robust;
  if (!isRobustness(options.robust))
    ok = error("--robust: " + describeRobustness(options.robust));
  result.flat = input.flat;
  return ok;
}

/// Options that contradict each other, all at once.
bool checkOptions() {
  bool ok = true;
  if (asIs && optimizeFlag)
    ok = error("--as-is and --optimize exclude each other");
  if (asIs && !planFile.empty())
    ok =
        error("--as-is and --plan exclude each other: with a plan, the graph as it is is the first "
              "column, or \"before\"");
  if (!optimizeFlag) {
    std::string useless;
    for (cl::Option *option : std::initializer_list<cl::Option *>{
             &options.memoryLimit, &caps, &options.bucketCaps, &options.mixedDtype, &options.bucket,
             &options.reorder, &options.policy, &options.robust, &noBucket, &noSchedule,
             &options.chunkCollectives, &options.splitNodes})
      if (option->getNumOccurrences() != 0)
        useless += (useless.empty() ? "--" : ", --") + option->ArgStr.str();
    if (!useless.empty())
      ok = error(useless + ": only with --optimize");
    if (flat.getNumOccurrences() != 0 && planFile.empty())
      ok = error("--flat: only with --optimize or --plan");
  }
  std::string message;
  std::optional<ChunkMode> chunks = ChunkMode::parse(options.chunkCollectives.getValue(), message);
  if (!chunks)
    ok = error("--chunk-collectives: " + message);
  std::optional<SplitMode> split = parseSplitMode(options.splitNodes.getValue(), message);
  if (!split)
    ok = error("--split-nodes: " + message);
  for (cl::opt<std::string> *file : {&emit, &planFile}) {
    if (chunks && chunks->enabled && !file->empty())
      ok = error("--" + file->ArgStr + " and --chunk-collectives exclude each other: a plan file " +
                 "has the nodes of the graph, and no pieces of them");
    if (split && *split != SplitMode::Off && !file->empty())
      ok = error("--" + file->ArgStr + " and --split-nodes exclude each other: a plan file has " +
                 "the nodes of the graph, and no parts of them");
  }
  if ((noBucket || !options.bucket) && (noSchedule || !options.reorder))
    ok = error("--no-bucket and --no-schedule together leave nothing to optimise");
  return ok;
}

template <typename Write> bool writeFile(StringRef path, Write write) {
  std::ofstream file(path.str(), std::ios::binary);
  if (file)
    write(file);
  file.flush();
  return file ? true : error("cannot write '" + path + "'");
}

/// Times beyond what a double holds make every comparison of plans meaningless.
bool isFinite(const shardc::Simulation &simulation) {
  if (std::ranges::all_of(simulation.asIsSteps, [](double us) { return std::isfinite(us); }))
    return true;
  const Graph &graph = simulation.graph;
  NodeId longest = 0;
  for (NodeId node = 0; node != graph.numNodes(); ++node)
    if (graph.durationUs(node) > graph.durationUs(longest))
      longest = node;
  return error(model + ": the step is longer than a number can say: look at --network, the " +
               "topology and the durations (the longest kernel is '" + graph.nameOf(longest) +
               "', " + llvm::formatv("{0:e}", graph.durationUs(longest)).str() + " us)");
}

double cpuSeconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

int run(const char *) {
  Input input;
  OptimizeOptions optimizing;
  bool right = checkOptions();
  // Is the text right? What it says in bytes depends on the graph.
  if (optimizeFlag)
    right &= optimizeOptions(input, /*peak=*/1, optimizing);
  double start = cpuSeconds();
  if (!load(input) || !right)
    return 1;
  input.flat = flat.getNumOccurrences() ? bool(flat) : input.isProgram;
  const Graph &graph = *input.graph;
  double loaded = cpuSeconds();
  shardc::Simulation simulation{
      .model = model,
      .costModel = std::string(input.costModel->name()),
      .graph = graph,
      .asIs = simulate(graph, *input.costModel),
      .scenarios = standardScenarios(graph, *input.costModel),
      .asIsSteps = {},
      .bounds = computeBounds(graph, *input.costModel),
      .planned = &graph,
      .origins = std::move(input.origins),
      .flat = input.flat,
      .passSeconds = {},
  };
  simulation.asIsSteps =
      Replay(graph, identityPlan(graph), *input.costModel).stepsUs(simulation.scenarios);
  double simulated = cpuSeconds();
  for (NodeId node = 0; node != graph.numNodes(); ++node)
    if (graph.isKernel(node)) {
      ++simulation.kernels;
      simulation.timedKernels += input.durations.count(graph.nameOf(node));
    }
  simulation.passSeconds = {{"import", loaded - start}, {"simulate", simulated - loaded}};

  if ((!emit.empty() && !shardc::canWritePlan(model, graph)) || !isFinite(simulation))
    return 1;
  OptimizeResult result, given;
  if (input.plan) {
    double begin = cpuSeconds();
    given = evaluatePlan(graph, *input.costModel, std::move(*input.plan), input.flat);
    simulation.given = &given;
    simulation.passSeconds.push_back({"plan", cpuSeconds() - begin});
  }
  shardc::LargerMoves moves;
  if (optimizeFlag && !emit.empty())
    shardc::remarkOnGroups(graph);
  if (optimizeFlag) {
    if (!optimizeOptions(input, simulation.asIs.peakHoldBytes, optimizing))
      return 1;
    double begin = cpuSeconds();
    if (chunkMode().enabled) {
      moves.chunk(*input.costModel, input.regions, chunkMode(), simulation, optimizing);
      simulation.passSeconds.push_back({"chunk", cpuSeconds() - begin});
      begin = cpuSeconds();
    }
    if (splitMode() != SplitMode::Off) {
      moves.split(*input.costModel, input.splitFacts, splitMode(), simulation, optimizing);
      simulation.passSeconds.push_back({"split", cpuSeconds() - begin});
      begin = cpuSeconds();
    }
    result = optimize(*simulation.planned, *input.costModel, optimizing);
    simulation.passSeconds.push_back({"optimize", cpuSeconds() - begin});
    if (!result.error.empty()) {
      error(model + ": " + result.error);
      return 1;
    }
    simulation.optimized = &result;
  }

  const Plan *plan = optimizeFlag ? &result.plan : simulation.given ? &given.plan : nullptr;
  bool ok = true;
  if (!emit.empty())
    ok &= writeFile(emit, [&](std::ostream &out) {
      writePlan(graph, plan ? *plan : identityPlan(graph), out);
    });
  if (!trace.empty())
    ok &= writeFile(trace, [&](std::ostream &out) {
      shardc::writeTimelines(simulation, *input.costModel, out);
    });
  if (!ok)
    return 1;
  auto report = [&](std::ostream &out) {
    (format == Format::Json ? shardc::writeSimulation : shardc::printSimulation)(simulation, out);
  };
  if (output == "-") {
    report(std::cout);
    std::cout.flush();
    ok &= std::cout ? true : error("cannot write to standard output");
  } else {
    ok &= writeFile(output, report);
  }
  return ok ? 0 : 1;
}

} // namespace simulate_command
} // namespace

shardc::Command shardc::simulateCommand() {
  return {
      &simulate_command::command, &simulate_command::category,
      R"(  shardc simulate graph.pt2 --groups groups.json --durations us.json --optimize --trace t.json
  shardc simulate graph.pt2 --groups groups.json --topology h100-64 --optimize --memory-limit 70GiB
  shardc simulate graph.pt2 --groups groups.json --plan plan.json --network 1.5
  shardc simulate graph.pt2 --groups groups.json --optimize --bucket-caps 1,25 --emit plan.json --format json
)",
      simulate_command::run};
}
