// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/program/Metadata.h"
#include "importers/torch_export/program/Reader.h"

#include <gtest/gtest.h>

using namespace shardc::torch_export;

namespace {

TEST(Metadata, ModulePath) {
  EXPECT_EQ(modulePath("L__self__,,a.B;L__self__transformer,transformer.h.0.attn,a.b.Attn"),
            "transformer.h.0.attn");
  EXPECT_EQ(modulePath("L__self__,,a.B"), "");
  EXPECT_EQ(modulePath("L__self__,,a.B;x,layer@2,torch.nn.Linear"), "layer");
  EXPECT_EQ(
      modulePath("_empty_nn_module_stack_from_metadata_hook,_empty_nn_module_stack_from_metadata_"
                 "hook,_empty_nn_module_stack_from_metadata_hook"),
      "");
  EXPECT_EQ(modulePath(""), "");
  EXPECT_EQ(modulePath("garbage"), "");
}

TEST(Metadata, SourceLineIsTheUsers) {
  constexpr auto trace = "File \"/home/u/model.py\", line 12, in forward\n"
                         "    y = self.fc(x)\n"
                         "  File \"/v/lib/python3.11/site-packages/torch/nn/modules/linear.py\", "
                         "line 134, in forward\n"
                         "    return F.linear(input, self.weight, self.bias)";
  EXPECT_EQ(sourceLine(trace).file, "/home/u/model.py");
  EXPECT_EQ(sourceLine(trace).line, 12u);
  SourceLine own = sourceLine("File \"torch/fx/passes/runtime_assert.py\", line 24, in insert");
  EXPECT_EQ(own.file, "torch/fx/passes/runtime_assert.py");
  EXPECT_EQ(own.line, 24u);
  // Code that PyTorch generated has no file: the line that called it is the user's.
  SourceLine called = sourceLine("  File \"/home/u/model.py\", line 12, in forward\n"
                                 "  File \"<eval_with_key>.12\", line 5, in forward");
  EXPECT_EQ(called.file, "/home/u/model.py");
  EXPECT_EQ(sourceLine("File \"<eval_with_key>.12\", line 5, in forward").line, 0u);
  EXPECT_EQ(sourceLine("").line, 0u);
  EXPECT_EQ(sourceLine("File \"x.py\", line abc").line, 0u);
  EXPECT_EQ(sourceLine("File \"x.py").line, 0u);
}

TEST(Metadata, LeavesOfTrees) {
  auto leaf = [] { return std::string(R"({"type": null, "context": null, "children_spec": []})"); };
  std::string dict =
      R"({"type": "builtins.dict", "context": "[\"b\", \"a\"]", "children_spec": [)" + leaf() +
      ", " + R"({"type": "builtins.tuple", "context": "null", "children_spec": [)" + leaf() + ", " +
      leaf() + "]}]}";
  EXPECT_EQ(treeLeafPaths("[1, " + dict + "]"), (std::vector<std::string>{"b", "a.0", "a.1"}));
  EXPECT_EQ(treeLeafPaths("[1, " + leaf() + "]"), (std::vector<std::string>{""}));
  EXPECT_TRUE(treeLeafPaths("[1, 2]").empty());
  EXPECT_TRUE(treeLeafPaths("").empty());
}

} // namespace
