// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/archive/ShardedArchive.h"

#include "support/archive/SafetensorsWriter.h"
#include "test/unit/support/archive/Mutations.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>

using namespace shardc;
using namespace shardc::test;

namespace {

using Ints = std::vector<int64_t>;

/// A folder with a matrix of 5 x 4 in a grid of four uneven blocks in two files, a scalar, and a
/// tensor without elements.
class ShardedArchiveTest : public testing::Test {
protected:
  void SetUp() override {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    index.save = "s1";
    index.metadata = {{"shardc", "checkpoint"}};
    ShardedTensor matrix{"m", ElementType::F32, {5, 4}, {}};
    for (int64_t column : {0, 3})
      for (int64_t row : {0, 2})
        addBlock(matrix, column ? "b" : "a", {row, column}, {row ? 3 : 2, column ? 1 : 3});
    ShardedTensor scalar{"s", ElementType::I64, {}, {}};
    addBlock(scalar, "a", {}, {});
    index.tensors = {matrix, scalar, {"none", ElementType::F32, {0, 4}, {}}};
    writeFile("a", "s1");
    writeFile("b", "s1");
    writeIndex(index.json());
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  void addBlock(ShardedTensor &tensor, const std::string &file, Ints begin, Ints sizes) {
    std::string key = ShardedBlock::keyOf(tensor.name, begin, sizes);
    entries[file].push_back({key, tensor.type, sizes});
    tensor.blocks.push_back({file, key, std::move(begin), std::move(sizes)});
  }
  void writeFile(const std::string &name, const std::string &save, size_t cut = 0) {
    std::string bytes = safetensorsHeader(entries[name], {{ShardedIndex::saveKey, save}});
    for (const SafetensorsEntry &entry : entries[name])
      bytes += std::string(entry.end - entry.begin, char(name[0]));
    std::ofstream(folder / name, std::ios::binary) << bytes.substr(0, bytes.size() - cut);
  }
  void writeIndex(const std::string &text) {
    std::ofstream(folder / ShardedIndex::fileName, std::ios::binary) << text;
  }
  std::string refusal() {
    std::string error;
    EXPECT_FALSE(readShardedArchive(folder.string(), error));
    return error;
  }
  void expectRefused(const std::string &what) {
    EXPECT_NE(refusal().find(what), std::string::npos) << refusal();
  }

  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("sharded" + std::to_string(getpid()));
  ShardedIndex index;
  std::map<std::string, std::vector<SafetensorsEntry>> entries;
};

TEST_F(ShardedArchiveTest, ReadsBlocks) {
  std::string error;
  std::optional<TensorStore> store = readShardedArchive(folder.string(), error);
  ASSERT_TRUE(store) << error;
  EXPECT_EQ(store->metadata("shardc"), "checkpoint");
  const StoredTensor *matrix = store->find("m");
  ASSERT_TRUE(matrix);
  EXPECT_TRUE(matrix->hasData());
  EXPECT_TRUE(matrix->storage.empty());
  ASSERT_EQ(matrix->blocks.size(), 4u);
  EXPECT_EQ(matrix->blocks[3].begin, (Ints{2, 3}));
  EXPECT_EQ(matrix->blocks[3].storage.size(), 3 * 4u);
  EXPECT_EQ(matrix->blocks[3].storage[0], std::byte('b'));
  // What one block is the whole of is as in one file.
  EXPECT_TRUE(store->find("s")->blocks.empty());
  EXPECT_EQ(store->find("s")->storage.size(), 8u);
  EXPECT_TRUE(store->find("none")->hasData());
  // For those who do not know blocks it is no file.
  EXPECT_FALSE(TensorStore::open(folder.string(), error));
  EXPECT_TRUE(TensorStore::openWithBlocks(folder.string(), error));
}

TEST_F(ShardedArchiveTest, IndexIsReadBack) {
  std::string error;
  std::optional<ShardedIndex> again = ShardedIndex::parse(index.json(), error);
  ASSERT_TRUE(again) << error;
  EXPECT_EQ(again->json(), index.json());
  EXPECT_EQ(ShardedBlock::keyOf("fc.weight", Ints{0, 8}, Ints{16, 8}), "fc.weight[0:16, 8:16]");
  EXPECT_EQ(ShardedBlock::keyOf("step", Ints{}, Ints{}), "step[]");
}

TEST_F(ShardedArchiveTest, RefusesFilesThatAreNotOfTheSave) {
  std::filesystem::remove(folder / "b");
  expectRefused("1 of its 2 files cannot be opened: b: No such file or directory");
  writeFile("b", "s2");
  expectRefused("b: it is of the save s2, and the index is of the save s1");
  writeFile("b", "s1", 1);
  expectRefused("b: tensor 'm[2:5, 3:4]' lies outside the file");
  std::filesystem::remove(folder / ShardedIndex::fileName);
  expectRefused("it is no folder with a checkpoint: it lacks index.json");
}

TEST_F(ShardedArchiveTest, RefusesBlocksThatAreNotTheWholeTensor) {
  auto with = [&](auto change) {
    ShardedIndex other = index;
    change(other.tensors[0]);
    writeIndex(other.json());
  };
  const char *notWhole = "tensor 'm' is not the sum of its blocks";
  with([](ShardedTensor &m) { m.blocks.pop_back(); });
  expectRefused(notWhole);
  with([](ShardedTensor &m) { m.blocks.push_back(m.blocks[0]); });
  expectRefused(notWhole);
  with([](ShardedTensor &m) { m.blocks[1] = m.blocks[0]; });
  expectRefused(notWhole);
  with([](ShardedTensor &m) { m.blocks[3].begin[0] = 1; });
  expectRefused(notWhole);
  with([](ShardedTensor &m) { m.sizes[0] = 6; });
  expectRefused(notWhole);
  with([](ShardedTensor &m) { m.sizes = {4, 5}; });
  expectRefused(notWhole);
  with([](ShardedTensor &m) { m.type = ElementType::I32; });
  expectRefused("which a has with another type or shape");
  with([](ShardedTensor &m) { m.blocks[0].file = "b"; });
  expectRefused("has a block m[0:2, 0:3], which b does not have");
  // Names are those of files in the folder.
  for (const char *name : {"../a", "/a", ".", "..", "", "index.json"}) {
    with([&](ShardedTensor &m) { m.blocks[0].file = name; });
    expectRefused("tensor 'm' has no valid dtype, shape or blocks");
  }
}

TEST_F(ShardedArchiveTest, MutatedIndicesAreReadOrRefused) {
  std::mt19937_64 random(14);
  const std::string text = index.json();
  size_t accepted = 0;
  for (int i = 0; i < 2000; ++i) {
    writeIndex(i % 2 ? mutateJson(text, random) : mutateBytes(text, random));
    std::string error;
    std::optional<TensorStore> store = readShardedArchive(folder.string(), error);
    ASSERT_TRUE(store || !error.empty()) << i;
    accepted += store.has_value();
    for (size_t t = 0; store && t < store->tensors().size(); ++t) {
      const StoredTensor &tensor = store->tensors()[t];
      int64_t elements = 0;
      for (const StoredBlock &block : tensor.blocks) {
        int64_t count = std::accumulate(block.sizes.begin(), block.sizes.end(), int64_t(1),
                                        std::multiplies<>());
        ASSERT_EQ(block.storage.size(), size_t(count) * byteWidth(tensor.type)) << i;
        elements += count;
      }
      ASSERT_TRUE(tensor.blocks.empty() || elements == tensor.elements()) << i;
    }
  }
  EXPECT_GT(accepted, 0u);
}

} // namespace
