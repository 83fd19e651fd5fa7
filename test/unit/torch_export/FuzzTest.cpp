// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mutations with fixed seeds: whatever the bytes, the readers return a value or an error. What a
// crash looks like is left to the sanitizers of the debug preset; here it ends the test.
#include "importers/torch_export/program/Metadata.h"
#include "importers/torch_export/program/Program.h"
#include "importers/torch_export/program/SymExpr.h"
#include "test/unit/torch_export/Models.h"

#include <random>

using namespace shardc;
using shardc::test::modelFile;
using shardc::test::modelJson;

namespace {

using Random = std::mt19937_64;

size_t below(Random &random, size_t limit) { return limit ? random() % limit : 0; }

std::string mutateBytes(std::string bytes, Random &random) {
  for (size_t i = 0, n = 1 + below(random, 8); i < n && !bytes.empty(); ++i) {
    size_t at = below(random, bytes.size());
    switch (below(random, 5)) {
    case 0:
      bytes[at] = char(random());
      break;
    case 1:
      bytes[at] = char(bytes[at] ^ (1 << below(random, 8)));
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.erase(at, 1 + below(random, 64));
      break;
    case 4: // an extreme number in the place of four or eight bytes
      for (size_t k = 0, size = random() & 1 ? 4 : 8; k < size && at + k < bytes.size(); ++k)
        bytes[at + k] = random() % 4 ? char(0xff) : char(random());
      break;
    }
  }
  return bytes;
}

// Replaces pieces of JSON by others, so that most results still parse.
std::string mutateJson(std::string json, Random &random) {
  static const std::vector<std::string> pieces = {"null",
                                                  "true",
                                                  "-1",
                                                  "0",
                                                  "9223372036854775807",
                                                  "-9223372036854775808",
                                                  "1e308",
                                                  "\"\"",
                                                  "[]",
                                                  "{}",
                                                  "\"Infinity\"",
                                                  "{\"as_int\": 5}",
                                                  "{\"as_none\": true}",
                                                  "{\"as_tensor\": {\"name\": \"x\"}}",
                                                  "{\"as_expr\": {\"expr_str\": \"Add(\"}}"};
  for (size_t i = 0, n = 1 + below(random, 4); i < n; ++i) {
    size_t begin = json.find_first_of(",:[{", below(random, json.size()));
    if (begin == std::string::npos)
      continue;
    size_t end = json.find_first_of(",]}", begin + 1);
    if (end == std::string::npos)
      continue;
    if (random() % 4 == 0) // moves a piece of the text elsewhere
      json.insert(begin + 1, json.substr(below(random, json.size()), below(random, 200)) + ",");
    else
      json.replace(begin + 1, end - begin - 1, pieces[below(random, pieces.size())]);
  }
  return json;
}

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
