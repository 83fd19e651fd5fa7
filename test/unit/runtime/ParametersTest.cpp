// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slices of parameters: in place where they can be, copied where they must be, nothing else
// touched.
#include "runtime/model/Parameters.h"
#include "runtime/host/HostExecutor.h"
#include "runtime/support/Copy.h"
#include "runtime/support/Failure.h"
#include "support/archive/SafetensorsWriter.h"
#include "support/archive/ShardedArchive.h"
#include "test/unit/runtime/Files.h"

#include <gtest/gtest.h>
#include <numeric>

using namespace shardc::rt;

namespace {

std::string manifestWith(const std::string &parameters) {
  return R"({"format": 1, "tool": "t", "name": "n", "artifact_hash": "a", "sequence_hash": "s",
    "target": {"kind": "cpu", "triple": "x", "cpu": "c", "features": []}, "world_size": 4,
    "mesh": {"name": "mesh", "axes": [{"name": "tp", "size": 4}]},
    "parameters": [)" +
         parameters + R"(], "entries": [{"name": "e", "inputs": [], "outputs": [],
    "arena_bytes": [0]}]})";
}

struct Loaded {
  Manifest manifest;
  ParameterSet set;
};
Loaded load(const std::string &parameters, const std::string &path, int64_t rank) {
  Manifest manifest = Manifest::parse(manifestWith(parameters));
  shardrt_program program{};
  auto coordinate = manifest.mesh.coordinateOf(rank);
  HostMemory memory{Allocator{}};
  ParameterSet set = ParameterSet::fromFile(manifest, program, coordinate, memory, path,
                                            ParameterSet::Reading::Weights);
  return {std::move(manifest), std::move(set)};
}

std::vector<float> iota(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

} // namespace

TEST(Parameters, RowsInPlaceColumnsCopiedEveryRankItsOwn) {
  test::Folder folder;
  test::writeSafetensors(folder.file("w"),
                         {{"rows", test::stored<float>("F32", {10, 3}, iota(30))},
                          {"vector", test::stored<float>("F32", {6}, iota(6))},
                          {"wide", test::stored<float>("F32", {2, 7}, iota(14))}});
  const char *parameters = R"(
    {"names": ["rows"], "type": "f32", "shape": [10, 3], "layout": "[S(0)]"},
    {"names": ["wide"], "type": "f32", "shape": [2, 7], "layout": "[S(1)]"},
    {"names": ["vector"], "type": "f32", "shape": [6], "layout": "[R]", "mutable": true})";
  for (int64_t rank = 0; rank < 4; ++rank) {
    Loaded loaded = load(parameters, folder.file("w"), rank);
    // 10 rows: 3, 3, 3, 1. 7 columns: 2, 2, 2, 1.
    int64_t rows = rank < 3 ? 3 : 1, wide = rank < 3 ? 2 : 1;
    auto *pointers = reinterpret_cast<float *const *>(loaded.set.pointers());
    for (int64_t i = 0; i < rows * 3; ++i)
      EXPECT_EQ(pointers[0][i], float(rank * 9 + i));
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < wide; ++j)
        EXPECT_EQ(pointers[1][i * wide + j], float(i * 7 + rank * 2 + j));
    EXPECT_EQ(pointers[2][5], 5);
    EXPECT_EQ(loaded.set.bytes(), uint64_t(rows * 3 + wide * 2 + 6) * 4);
    EXPECT_EQ(loaded.set.copiedBytes(), uint64_t(wide * 2 + 6) * 4) << "rows must be in place";
  }
}

TEST(Parameters, UnalignedSlicesAreCopied) {
  test::Folder folder;
  // One byte before it puts the f32 tensor at an odd address (data is in order of names).
  test::writeSafetensors(folder.file("w"), {{"a", test::stored<uint8_t>("U8", {1}, {7})},
                                            {"b", test::stored<float>("F32", {8}, iota(8))}});
  Loaded loaded = load(R"(
    {"names": ["a"], "type": "u8", "shape": [1], "layout": "[R]"},
    {"names": ["b"], "type": "f32", "shape": [8], "layout": "[S(0)]"})",
                       folder.file("w"), 2);
  EXPECT_EQ(static_cast<const float *>(loaded.set.pointers()[1])[1], 5);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(loaded.set.pointers()[1]) % 4, 0u);
  EXPECT_EQ(loaded.set.copiedBytes(), 8u);
}

TEST(Parameters, BlocksOfAFusedWeight) {
  test::Folder folder;
  test::writeSafetensors(folder.file("w"), {{"qkv", test::stored<float>("F32", {24}, iota(24))}});
  Loaded loaded =
      load(R"({"names": ["qkv"], "type": "f32", "shape": [24], "layout": "[S(0, blocks = 3)]"})",
           folder.file("w"), 1);
  auto *slice = static_cast<const float *>(loaded.set.pointers()[0]);
  EXPECT_EQ(std::vector<float>(slice, slice + 6), (std::vector<float>{2, 3, 10, 11, 18, 19}));
}

TEST(Parameters, MutableOnesAreNotInTheFile) {
  test::Folder folder;
  test::writeSafetensors(folder.file("w"), {{"state", test::stored<float>("F32", {4}, iota(4))}});
  const std::string spec =
      R"({"names": ["state"], "type": "f32", "shape": [4], "layout": "[R]", "mutable": true})";
  Loaded loaded = load(spec, folder.file("w"), 0);
  EXPECT_EQ(loaded.set.bytes(), 16u);
  EXPECT_EQ(loaded.set.copiedBytes(), 16u);
  static_cast<float *>(loaded.set.pointers()[0])[2] = 42;
  Loaded again = load(spec, folder.file("w"), 0);
  EXPECT_EQ(static_cast<const float *>(again.set.pointers()[0])[2], 2);
}

namespace {
/// Kilobytes of the file's mapping that are in this process's memory.
int64_t residentOf(const std::string &path) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool inside = false;
  int64_t total = 0;
  while (std::getline(maps, line)) {
    bool header = line.find('-') != std::string::npos && line.find("kB") == std::string::npos;
    if (header)
      inside = line.size() >= path.size() &&
               line.compare(line.size() - path.size(), path.size(), path) == 0;
    if (inside && line.rfind("Rss:", 0) == 0)
      total += std::stoll(line.substr(4));
  }
  return total;
}
} // namespace

TEST(Parameters, ARankTouchesItsOwnSliceOnly) {
  test::Folder folder;
  constexpr int64_t rows = 4096, columns = 4096; // 64 MiB
  std::string path = folder.file("large");
  test::writeSafetensors(path, {});
  {
    std::string json = R"({"w":{"dtype":"F32","shape":[4096,4096],"data_offsets":[0,67108864]},
                           "v":{"dtype":"F32","shape":[1],"data_offsets":[67108864,67108868]}})";
    json.resize((json.size() + 7) / 8 * 8, ' ');
    uint64_t length = json.size();
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char *>(&length), 8);
    file << json;
    file.close();
    std::filesystem::resize_file(path, 8 + length + size_t(rows * columns) * 4 + 4);
  }
  // Mutable, so that the slice is copied: all of it is read.
  const std::string copied =
      R"({"names": ["w"], "type": "f32", "shape": [4096, 4096], "layout": "[S(0)]", "mutable": true})";
  auto small = [](const std::string &isMutable) {
    return R"(, {"names": ["v"], "type": "f32", "shape": [1], "layout": "[R]", "mutable": )" +
           isMutable + "}";
  };
  {
    Loaded loaded = load(copied + small("false"), path, 2);
    EXPECT_EQ(loaded.set.copiedBytes(), uint64_t(16) << 20);
    int64_t resident = residentOf(path);
    EXPECT_GT(resident, 0) << "the mapping was not found";
    EXPECT_LE(resident, 17 << 10) << "a quarter of 64 MiB, and the header";
  }
  // Of a file that nothing is used in place of nothing is kept.
  Loaded loaded = load(copied + small("true"), path, 2);
  EXPECT_EQ(residentOf(path), 0);
}

TEST(Parameters, BlocksOfACheckpointInPlaceWhereOneHasTheSlice) {
  // Rows in two blocks of 4 and 6: rank 0 has rows 0 to 2, rank 1 has rows 3 to 5, of both.
  test::Folder folder;
  shardc::ShardedIndex index;
  index.save = "one";
  shardc::ShardedTensor rows{"rows", shardc::ElementType::F32, {10, 3}, {}};
  const std::vector<float> values = iota(30);
  for (auto [begin, count] : {std::pair<int64_t, int64_t>(0, 4), {4, 6}}) {
    std::string file = begin ? "second" : "first";
    std::vector<shardc::SafetensorsEntry> entries = {
        {"rows", shardc::ElementType::F32, {count, 3}}};
    std::ofstream out(folder.file(file), std::ios::binary);
    out << shardc::safetensorsHeader(entries, {{shardc::ShardedIndex::saveKey, index.save}});
    out.write(reinterpret_cast<const char *>(values.data() + begin * 3), count * 12);
    rows.blocks.push_back({file, "rows", {begin, 0}, {count, 3}});
  }
  index.tensors = {rows};
  std::ofstream(folder.file(shardc::ShardedIndex::fileName)) << index.json();
  for (const char *layout : {"[S(0)]", "[S(1)]", "[R]"})
    for (int64_t rank = 0; rank < 4; ++rank) {
      Loaded loaded = load(R"({"names": ["rows"], "type": "f32", "shape": [10, 3], "layout": ")" +
                               std::string(layout) + "\"}",
                           folder.path.string(), rank);
      const ParameterSpec &spec = loaded.manifest.parameters[0];
      Slice slice = Slice::make(spec.layout, {10, 3}, loaded.manifest.mesh.coordinateOf(rank));
      std::vector<float> want(static_cast<size_t>(slice.elements()));
      const int64_t strides[] = {3, 1};
      slice.extract(want.data(), values.data(), strides, 4);
      auto *got = static_cast<const float *>(loaded.set.pointers()[0]);
      EXPECT_EQ(std::vector<float>(got, got + want.size()), want) << layout << rank;
      bool inPlace = std::string(layout) == "[S(0)]" && rank != 1;
      EXPECT_EQ(loaded.set.copiedBytes(), inPlace ? 0u : want.size() * 4) << layout << rank;
    }
}
