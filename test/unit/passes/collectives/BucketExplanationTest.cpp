// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/collectives/core/BucketExplanation.h"
#include "test/unit/passes/collectives/Builder.h"
#include "test/unit/passes/collectives/RoundModel.h"

#include <sstream>

using namespace shardc::collectives;
using shardc::CollectiveKind;
using namespace shardc::collectives::test;

namespace {

/// Expects a part of a text.
void expectPart(const std::ostringstream &text, const std::string &part) {
  EXPECT_NE(text.str().find(part), std::string::npos) << part << "\nis not in\n" << text.str();
}

/// Three gathers that are wanted at once, and an all-to-all.
struct Example {
  Graph graph;
  OptimizeResult result;
  std::vector<Origin> origins;

  Example() {
    Builder b;
    GroupId g = b.group("dp", {0, 2, 4, 6});
    std::vector<ValueId> full;
    for (const char *name : {"a", "b", "c"})
      full.push_back(b.run(name, CollectiveKind::AllGather, g, b.input(10), 40));
    full.push_back(b.run("swap", CollectiveKind::AllToAll, g, b.input(40), 40));
    b.output(b.kernel("use", full, 5, 8));
    graph = b.finish();
    OptimizeOptions options;
    options.schedule = false;
    options.memoryLimit = 100000;
    options.buckets.caps = BucketCaps({1, 2});
    result = optimize(graph, RoundModel(), options);
    origins.resize(graph.numNodes());
    origins[nodeNamed(graph, "a")] = {"layers.0", "layers.0.\"w\"", "m.py:3"};
  }
};

TEST(Explain, Json) {
  Example e;
  ASSERT_EQ(e.result.error, "");
  std::ostringstream out;
  writeExplanation(e.graph, e.result, e.origins, out);
  const BucketRecord &bucket = e.result.buckets.at(0);
  std::ostringstream exposed;
  exposed << "\"exposed_before_us\": " << bucket.exposedBeforeUs
          << ", \"exposed_after_us\": " << bucket.exposedAfterUs;
  expectPart(out, "{\"id\": 0, \"kind\": \"AG\", \"group\": \"dp\", \"group_size\": 4, "
                  "\"bytes\": 120, \"cap_bytes\": 1048576, \"closed\": \"complete\", " +
                      exposed.str());
  expectPart(out, "{\"name\": \"a\", \"bytes\": 40, \"module\": \"layers.0\", "
                  "\"tensor\": \"layers.0.\\\"w\\\"\", \"location\": "
                  "\"m.py:3\"}, {\"name\": \"b\", \"bytes\": 40}");
  expectPart(out, "\"alone\": [\n{\"name\": \"swap\", \"bytes\": 40, \"kind\": "
                  "\"A2A\", \"group\": \"dp\", \"group_size\": 4, \"reason\": "
                  "\"its kind has no buckets\"");
}

TEST(Explain, Text) {
  Example e;
  std::ostringstream out;
  printExplanation(e.graph, e.result, e.origins, out);
  expectPart(out, "bucket 0: 3 all_gather over group dp (4 ranks), ");
  expectPart(out, "(cap 1.00 MiB)");
  expectPart(out, "closed (complete): no other collective has its kind");
  expectPart(out, "layers.0.\"w\" (a)\n");
  expectPart(out, "left alone: 1 all_to_all");
  expectPart(out, "because its kind has no buckets");
}

TEST(Explain, NothingToSay) {
  Builder b;
  b.output(b.kernel("k", {b.input(1)}, 1, 1));
  Graph graph = b.finish();
  OptimizeResult result = optimize(graph, RoundModel());
  std::ostringstream json, text;
  writeExplanation(graph, result, {}, json);
  printExplanation(graph, result, {}, text);
  EXPECT_EQ(json.str(), "\"buckets\": [], \"alone\": []");
  EXPECT_EQ(text.str(), "");
}

} // namespace
