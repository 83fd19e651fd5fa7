// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the optimiser's core on an exported graph or a generated one and prints its figures: what
// the measurements in docs/collective-optimiser.md were made with.
//
//   collectives-tool GRAPH.pt2 [OPTION=VALUE]...    with GRAPH.groups.json and GRAPH.durations.json
//                                                   (GRAPH up to its first dot) beside it
//   collectives-tool generate [SHAPE=VALUE]... [OPTION=VALUE]...
//   collectives-tool generate family=NAME seed=N nodes=N [OPTION=VALUE]...
//                                                   one of UnseenGraphs.h
//   collectives-tool unseen family=NAME seed=N nodes=N [limit=TIMES]
//                                                   one line of JSON: our step over those of others
//   collectives-tool variant GRAPH.pt2 [network=TIMES] [kernels=TIMES] [spread=PART] [seed=N]
//                                                   [limit=TIMES] [topology=NAME]
//                                                   the same of a graph whose collectives and
//                                                   kernels take other times than the files beside
//                                                   it say
//
// SHAPE: layers tokens hidden mlp kv vocabulary dp tp experts ep replicated backward
// OPTION: limit (times the program's peak), cap, bucket, schedule, flat, mixed (0 or 1), emit (a
// file for the plan), trace (a file), explain (1).

#include "passes/collectives/core/BucketExplanation.h"
#include "passes/collectives/core/FiguresReport.h"
#include "passes/collectives/exported/FromProgram.h"
#include "passes/cost/core/ScaledModel.h"
#include "passes/cost/core/SimV1.h"
#include "passes/cost/core/TargetDescription.h"
#include "support/archive/Pt2Archive.h"
#include "test/unit/passes/collectives/CompareNetworks.h"
#include "test/unit/passes/collectives/ModelGenerator.h"
#include "test/unit/passes/collectives/UnseenGraphs.h"

#include <charconv>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

using namespace shardc;
using namespace shardc::collectives;

namespace {

using Arguments = std::map<std::string, std::string>;

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A whole number that an argument must be; nothing, with a message, for anything else.
std::optional<uint32_t> numberOf(Arguments &arguments, const std::string &name) {
  const std::string &text = arguments[name];
  uint32_t number = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure == std::errc() && end == text.data() + text.size())
    return number;
  std::cerr << name << "='" << text << "' is no whole number\n";
  return std::nullopt;
}

std::optional<Graph> unseenGraph(Arguments &arguments) {
  const std::string &family = arguments["family"];
  std::string problem = test::describeUnknownFamily(family);
  if (!problem.empty())
    std::cerr << problem << "\n";
  std::optional<uint32_t> seed = numberOf(arguments, "seed"), nodes = numberOf(arguments, "nodes");
  if (!problem.empty() || !seed || !nodes)
    return std::nullopt;
  return test::unseenGraph(family, *seed, *nodes);
}

std::optional<Graph> generate(Arguments &arguments) {
  if (arguments.count("family"))
    return unseenGraph(arguments);
  test::ModelShape shape;
  auto set = [&](const char *name, auto &value) {
    if (auto it = arguments.find(name); it != arguments.end())
      value = std::stod(it->second);
  };
  set("layers", shape.layers);
  set("tokens", shape.tokens);
  set("hidden", shape.hidden);
  set("mlp", shape.mlp);
  set("kv", shape.keyValue);
  set("vocabulary", shape.vocabulary);
  set("dp", shape.dp);
  set("tp", shape.tp);
  set("experts", shape.localExperts);
  set("ep", shape.ep);
  set("replicated", shape.replicatedParameters);
  bool backward = false;
  set("backward", backward);
  shape.part = backward ? test::Part::Backward : test::Part::Forward;
  return test::generateModel(shape);
}

std::optional<Graph> import(const std::string &path, const cost::CostModel &model) {
  std::string error, bytes = readFile(path);
  std::string base = path.substr(0, path.find('.', path.rfind('/') + 1));
  std::vector<std::string> errors;
  auto read = [&]() -> std::optional<Graph> {
    auto archive = Pt2Archive::read(std::as_bytes(std::span(bytes)), error);
    auto json = archive ? archive->programJson(error) : std::nullopt;
    auto program = json ? torch_export::parseProgram(*json, error) : std::nullopt;
    if (!program)
      return std::nullopt;
    auto groups = parseGroups(readFile(base + ".groups.json"), error);
    auto durations = parseDurations(readFile(base + ".durations.json"), error);
    if (!groups || !durations)
      return std::nullopt;
    return graphFromProgram(*program, *groups, *durations, model, errors);
  };
  std::optional<Graph> graph = read();
  if (!error.empty())
    errors.push_back(error);
  for (const std::string &message : errors)
    std::cerr << message << "\n";
  return graph;
}

double cpuSeconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

void trace(const Graph &graph, const OptimizeResult &result, const cost::CostModel &model,
           const std::string &path) {
  std::vector<Span> before, after;
  SimulateOptions options;
  options.timeline = &before;
  simulate(graph, model, options);
  options.timeline = &after;
  simulate(graph, result.plan, model, options);
  NamedTimeline timelines[] = {{"before", &before, nullptr}, {"after", &after, &result.plan}};
  std::ofstream file(path);
  writeTrace(graph, timelines, file);
}

/// Prints one line of JSON: our step over those of others.
void compare(const Graph &graph, const cost::CostModel &model, Arguments &arguments) {
  OptimizeOptions options;
  if (arguments.count("limit"))
    options.memoryLimit =
        std::stod(arguments["limit"]) * static_cast<double>(simulate(graph, model).peakHoldBytes);
  test::Comparison result = test::compareWithOthers(graph, model, options);
  std::printf("{\"nodes\": %zu, \"error\": \"%s\"", graph.numNodes(), result.error.c_str());
  for (size_t i = 0; i != result.overOwn.size(); ++i)
    std::printf(", \"x%g\": %.6f, \"least x%g\": %.5f", test::comparedNetworks[i],
                result.overOwn[i], test::comparedNetworks[i], result.least[i]);
  std::printf(
      ", \"defensive\": %.6f, \"bound\": %.5f, \"least over goal\": %.6f, \"reached\": %s}\n",
      result.overDefensive, result.nominalOverBound, result.leastOverGoal,
      result.reachesGoals() ? "true" : "false");
}

int unseen(Arguments &arguments) {
  std::optional<Graph> graph = unseenGraph(arguments);
  if (!graph)
    return 1;
  compare(*graph, cost::SimV1(), arguments);
  return 0;
}

/// An exported graph on another network, with kernels that take other times.
int variant(Arguments &arguments, const std::string &path) {
  auto number = [&](const char *name, double value) {
    return arguments.count(name) ? std::stod(arguments[name]) : value;
  };
  std::string topology = arguments.count("topology") ? arguments["topology"] : "sim-v1";
  std::unique_ptr<cost::CostModel> base = cost::makeBuiltinModel(topology);
  if (!base) {
    std::cerr << "there is no topology '" << topology << "'\n";
    return 1;
  }
  std::optional<Graph> graph = import(path, *base);
  if (!graph)
    return 1;
  Scenario draw{"", 1, none, number("spread", 0), uint32_t(number("seed", 1))};
  for (NodeId node = 0; node != graph->numNodes(); ++node)
    if (graph->isKernel(node))
      graph->setDurationUs(node, graph->durationUs(node) * number("kernels", 1) *
                                     (draw.jitter == 0 ? 1 : kernelFactor(draw, node)));
  compare(*graph, cost::ScaledModel(*base, number("network", 1)), arguments);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    std::cerr << "usage: collectives-tool GRAPH.pt2|generate [NAME=VALUE]...\n";
    return 1;
  }
  Arguments arguments;
  for (int i = 2; i < argc; ++i) {
    std::string argument = argv[i];
    size_t equals = argument.find('=');
    arguments[argument.substr(0, equals)] =
        equals == std::string::npos ? "1" : argument.substr(equals + 1);
  }
  auto flag = [&](const char *name, bool value) {
    return arguments.count(name) ? arguments[name] == "1" : value;
  };

  if (argv[1] == std::string("unseen"))
    return unseen(arguments);
  if (argv[1] == std::string("variant") && argc > 2)
    return variant(arguments, argv[2]);
  cost::SimV1 model;
  double start = cpuSeconds();
  bool generated = std::string(argv[1]) == "generate";
  std::optional<Graph> graph = generated ? generate(arguments) : import(argv[1], model);
  if (!graph)
    return 1;
  double imported = cpuSeconds();

  OptimizeOptions options;
  if (arguments.count("limit"))
    options.memoryLimit =
        std::stod(arguments["limit"]) * static_cast<double>(simulate(*graph, model).peakHoldBytes);
  if (arguments.count("cap")) {
    std::string error;
    std::optional<BucketCaps> caps = BucketCaps::parse(arguments["cap"], error);
    if (!caps) {
      std::cerr << error << "\n";
      return 1;
    }
    options.buckets.caps = *caps;
  }
  options.bucket = flag("bucket", true);
  options.schedule = flag("schedule", true);
  options.flat = flag("flat", false);
  options.buckets.mixedDtype = flag("mixed", false);
  double begin = cpuSeconds();
  OptimizeResult result = optimize(*graph, model, options);
  double end = cpuSeconds();
  if (!result.error.empty()) {
    std::cerr << result.error << "\n";
    return 1;
  }
  for (const Figures *figures : {&result.before, &result.after}) {
    std::cout << "{";
    writeFigures({*figures,
                  result.bounds,
                  result.afterFlat.stepUs,
                  graph->numNodes(),
                  {{"import", imported - start}, {"optimize", end - begin}}},
                 std::cout);
    std::cout << "}\n";
  }
  double bound = std::max(result.bounds.lowerBoundNoLatencyUs, result.bounds.criticalPathUs);
  std::printf("%zu nodes: step %.1f -> %.1f us, %.4f of the bound, peak %.4f, %zu buckets, "
              "%u candidates, %.1f ms\n",
              graph->numNodes(), result.before.stepUs, result.after.stepUs,
              result.after.stepUs / bound,
              double(result.after.peakHoldBytes) / double(result.before.peakHoldBytes),
              result.buckets.size(), result.candidates, (end - begin) * 1e3);
  if (flag("explain", false))
    printExplanation(*graph, result, {}, std::cout);
  if (arguments.count("emit")) {
    std::ofstream file(arguments["emit"]);
    writePlan(*graph, result.plan, file);
  }
  if (arguments.count("trace"))
    trace(*graph, result, model, arguments["trace"]);
}
