// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/collectives/core/CheckPlan.h"
#include "passes/collectives/core/Optimize.h"
#include "passes/cost/core/SimV1.h"
#include "test/unit/collectives/GraphText.h"
#include "test/unit/collectives/ModelGenerator.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>

using namespace shardc;
using namespace shardc::collectives;

int main(int argc, char **argv) {
  std::string error;
  std::optional<Graph> graph;
  if (std::string(argv[1]) == "gen") {
    std::map<std::string, double> g;
    int i = 2;
    for (; i < argc && std::string(argv[i]) != "--"; ++i) {
      std::string a = argv[i];
      auto e = a.find('=');
      g[a.substr(0, e)] = std::stod(a.substr(e + 1));
    }
    test::ModelShape s;
    auto set = [&](const char *k, auto &x) {
      if (g.count(k))
        x = g[k];
    };
    set("layers", s.layers);
    set("tokens", s.tokens);
    set("hidden", s.hidden);
    set("mlp", s.mlp);
    set("kv", s.keyValue);
    set("vocab", s.vocabulary);
    set("dp", s.dp);
    set("tp", s.tp);
    set("experts", s.localExperts);
    set("ep", s.ep);
    set("replicated", s.replicatedParameters);
    if (g["bw"])
      s.part = test::Part::Backward;
    graph = test::generateModel(s);
    argv += i - 1;
    argc -= i - 1;
  } else {
    std::ifstream in(argv[1]);
    graph = test::readGraph(in, error);
  }
  if (!graph) {
    std::cerr << error;
    return 1;
  }
  std::map<std::string, std::string> o;
  for (int i = 2; i < argc; ++i) {
    std::string a = argv[i];
    auto e = a.find('=');
    o[a.substr(0, e)] = a.substr(e + 1);
  }
  cost::SimV1 model;
  auto show = [](const char *n, const Figures &f) {
    printf("%-8s step %.3f compute %.3f launches %lu exposed %.1f (%.1f %.1f %.1f %.1f) comm %.1f "
           "counts %lu %lu %lu %lu wait %lu buckets %lu peak %lu hold %lu\n",
           n, f.stepUs, f.computeUs, f.launches, f.totalExposedUs(), f.exposedUs[0], f.exposedUs[1],
           f.exposedUs[2], f.exposedUs[3], f.totalCommUs(), f.counts[0], f.counts[1], f.counts[2],
           f.counts[3], f.waits, f.buckets, f.peakBytes, f.peakHoldBytes);
  };
  uint64_t P0 = simulate(*graph, model).peakHoldBytes;
  OptimizeOptions opt;
  if (o.count("limit"))
    opt.memoryLimit = std::stod(o["limit"]) * P0;
  if (o.count("cap"))
    opt.buckets.caps = *BucketCaps::parse(o["cap"], error);
  if (o.count("bucket"))
    opt.bucket = o["bucket"] == "1";
  if (o.count("schedule"))
    opt.schedule = o["schedule"] == "1";
  if (o.count("flat"))
    opt.flat = o["flat"] == "1";
  clock_t c0 = clock();
  OptimizeResult r = optimize(*graph, model, opt);
  double ms = double(clock() - c0) / CLOCKS_PER_SEC * 1e3;
  show("before", r.before);
  show("after", r.after);
  show("flat", r.afterFlat);
  printf("lb %.1f nolat %.1f crit %.1f\n", r.bounds.lowerBoundUs, r.bounds.lowerBoundNoLatencyUs,
         r.bounds.criticalPathUs);
  printf("nodes %zu ratio %.4f  mem %.4f buckets %lu candidates %u ms %.1f %s\n", graph->numNodes(),
         r.after.stepUs / std::max(r.bounds.lowerBoundNoLatencyUs, r.bounds.criticalPathUs),
         double(r.after.peakHoldBytes) / P0, r.after.buckets, r.candidates, ms, r.error.c_str());
  if (o.count("explain")) {
    for (auto &b : r.buckets)
      printf("  %s x%zu %.3f MB cap %.1f %s %.1f -> %.1f\n",
             std::string(cost::shortNameOf(b.kind)).c_str(), b.members.size(), b.bytes / 1e6,
             b.capBytes / 1e6, std::string(textOf(b.closed)).c_str(), b.exposedBeforeUs,
             b.exposedAfterUs);
    std::map<std::string, int> why;
    for (auto &a : r.alone)
      why[std::string(textOf(a.reason))]++;
    for (auto &[k, v] : why)
      printf("  alone %d: %s\n", v, k.c_str());
  }
  if (o.count("emit")) {
    std::ofstream e(o["emit"]);
    writePlan(*graph, r.plan, e);
  }
}
