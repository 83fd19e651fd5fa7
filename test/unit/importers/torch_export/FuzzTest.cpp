// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mutations with fixed seeds: whatever the bytes, the readers return a value or an error. What a
// crash looks like is left to the sanitizers of the debug preset; here it ends the test.
#include "importers/torch_export/program/Metadata.h"
#include "importers/torch_export/program/Program.h"
#include "importers/torch_export/program/SymExpr.h"
#include "test/unit/importers/torch_export/Models.h"
#include "test/unit/support/archive/Mutations.h"

using namespace shardc;
using shardc::test::modelFile;
using shardc::test::modelJson;
using shardc::test::mutateBytes;
using shardc::test::mutateJson;
using Random = std::mt19937_64;

namespace {

// Reads everything that can be read, and touches every byte that is said to exist.
size_t readAll(const std::string &bytes) {
  std::string error;
  auto archive = Pt2Archive::read(std::as_bytes(std::span(bytes)), error);
  if (!archive)
    return error.empty() ? throw std::runtime_error("no error") : 0;
  size_t sum = 0;
  if (auto store = archive->takeTensors(error))
    for (const StoredTensor &tensor : store->tensors()) {
      int64_t last = tensor.offset;
      for (size_t d = 0; d < tensor.sizes.size(); ++d)
        last += (tensor.sizes[d] - 1) * tensor.strides[d];
      if (tensor.elements() && tensor.hasData())
        sum += size_t(tensor.storage[size_t(last + 1) * byteWidth(tensor.type) - 1]);
    }
  if (auto json = archive->programJson(error))
    torch_export::parseProgram(*json, error);
  return sum;
}

size_t parseAll(const std::string &json) {
  std::string error;
  auto program = torch_export::parseProgram(json, error);
  if (!program)
    return error.empty() ? throw std::runtime_error("no error") : 0;
  size_t sum = 1;
  for (const auto &[name, meta] : program->graph.tensors)
    for (const torch_export::SymInt &size : meta.sizes)
      if (!size.constant())
        sum += torch_export::parseSymExpr(size.expr, error).has_value();
  for (const torch_export::Node &node : program->graph.nodes)
    sum += torch_export::modulePath(node.moduleStack).size() +
           torch_export::sourceLine(node.stackTrace).line;
  return sum;
}

TEST(Fuzz, Archives) {
  Random random(1);
  for (const char *name : {"mlp_odd.pt2", "mixed_training.pt2"}) {
    std::string original = modelFile(name);
    for (int i = 0; i < 3000; ++i)
      ASSERT_NO_THROW(readAll(mutateBytes(original, random))) << name << " " << i;
  }
}

TEST(Fuzz, DirectoriesOfArchives) { // where most bytes matter
  Random random(2);
  std::string original = modelFile("mlp_odd.pt2");
  size_t directory = original.find("PK\x01\x02");
  ASSERT_NE(directory, std::string::npos);
  for (int i = 0; i < 6000; ++i) {
    std::string bytes = original;
    std::string tail = mutateBytes(bytes.substr(directory), random);
    ASSERT_NO_THROW(readAll(bytes.substr(0, directory) + tail)) << i;
  }
}

TEST(Fuzz, Truncations) {
  std::string original = modelFile("mlp_odd.pt2");
  for (size_t size = 0; size < original.size(); size += 1 + size / 64)
    ASSERT_NO_THROW(readAll(original.substr(0, size))) << size;
  std::string json = modelJson("mlp_odd.pt2");
  for (size_t size = 0; size < json.size(); size += 7)
    ASSERT_NO_THROW(parseAll(json.substr(0, size))) << size;
}

TEST(Fuzz, Programs) {
  Random random(3);
  size_t accepted = 0;
  for (const char *name : {"mlp_dynamic.pt2", "mixed_training.pt2"}) {
    std::string original = modelJson(name);
    for (int i = 0; i < 4000; ++i)
      ASSERT_NO_THROW(accepted += parseAll(mutateJson(original, random)) > 0) << name << " " << i;
  }
  EXPECT_GT(accepted, 100u); // otherwise the mutations test only the JSON parser
}

} // namespace
