// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/archive/Pt2Archive.h"
#include "test/unit/support/archive/ZipWriter.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace shardc;
using shardc::test::asBytes;
using shardc::test::ZipWriter;

namespace {

struct Weight {
  std::string name, record, sizes = "[2, 3]", strides = "[3, 1]", offset = "0", dtype = "7",
                            pickle = "false";
};

std::string ints(const std::string &list) {
  std::string out = "[";
  for (size_t at = 1; at + 1 < list.size();) {
    size_t end = list.find_first_of(",]", at);
    out += (out.size() > 1 ? ", {\"as_int\": " : "{\"as_int\": ") + list.substr(at, end - at) + "}";
    at = end + 1;
  }
  return out + "]";
}

// An archive with these weights; each record that is named holds 24 bytes 0, 1, 2, ...
std::string archiveOf(const std::vector<Weight> &weights, const std::string &record = "",
                      const std::string &ties = "") {
  std::string config = "{\"config\": {", data = record;
  for (const Weight &w : weights)
    config += (&w == &weights[0] ? "" : ", ") + ("\"" + w.name + "\": {\"path_name\": \"") +
              w.record + "\", \"is_param\": true, \"use_pickle\": " + w.pickle +
              ", \"tensor_meta\": {\"dtype\": " + w.dtype + ", \"sizes\": " + ints(w.sizes) +
              ", \"strides\": " + ints(w.strides) +
              ", \"storage_offset\": {\"as_int\": " + w.offset + "}}}";
  if (data.empty())
    for (int i = 0; i < 24; ++i)
      data.push_back(char(i));
  ZipWriter writer;
  writer.add("m/data/weights/weight_0", data == "none" ? "" : data);
  writer.add("m/data/weights/model_weights_config.json", config + "}}");
  writer.add("m/data/constants/model_constants_config.json", "{\"config\": {}}");
  writer.add("m/models/model.json", "{}");
  writer.add("m/byteorder", "little");
  if (!ties.empty())
    writer.add("m/extra/shardc_ties.json", ties);
  return writer.finish();
}

std::optional<TensorStore> tensors(const std::string &bytes, std::string &error) {
  auto archive = Pt2Archive::read(asBytes(bytes), error);
  return archive ? archive->takeTensors(error) : std::nullopt;
}

std::string errorOf(const std::vector<Weight> &weights) {
  std::string error, bytes = archiveOf(weights);
  EXPECT_FALSE(tensors(bytes, error));
  return error;
}

TEST(Archive, TiedAndViewedWeights) {
  std::string error, bytes = archiveOf({{"a.weight", "weight_0"},
                                        {"head.weight", "weight_0"},
                                        {"turned", "weight_0", "[3, 2]", "[1, 3]"},
                                        {"last", "weight_0", "[2]", "[1]", "4"}});
  auto store = tensors(bytes, error);
  ASSERT_TRUE(store) << error;
  const StoredTensor *a = store->find("a.weight");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->type, ElementType::F32);
  EXPECT_TRUE(a->contiguous() && a->parameter && a->hasData());
  EXPECT_TRUE(a->tiedTo(*store->find("head.weight")));
  EXPECT_FALSE(a->tiedTo(*store->find("turned")));
  EXPECT_FALSE(store->find("turned")->contiguous());
  EXPECT_EQ(store->find("last")->offset, 4);
  EXPECT_EQ(store->find("absent"), nullptr);
}

TEST(Archive, WithoutWeightsNothingIsTied) {
  std::string error, bytes = archiveOf({{"a", "weight_0"}, {"b", "weight_0"}}, "none");
  auto store = tensors(bytes, error);
  ASSERT_TRUE(store) << error;
  EXPECT_FALSE(store->find("a")->hasData());
  EXPECT_FALSE(store->find("a")->tiedTo(*store->find("b")));
}

TEST(Archive, NamesOfOneTensorWithoutWeights) {
  const std::vector<Weight> weights = {{"a", "weight_0"}, {"b", "weight_0"}, {"c", "weight_0"}};
  std::string error, bytes = archiveOf(weights, "none", "[[\"a\", \"c\", \"absent\"]]");
  auto store = tensors(bytes, error);
  ASSERT_TRUE(store) << error;
  const StoredTensor *a = store->find("a"), *b = store->find("b"), *c = store->find("c");
  EXPECT_TRUE(a->tiedTo(*c) && a->identity() == c->identity());
  EXPECT_FALSE(a->hasData() || a->tiedTo(*b) || b->identity());
  for (const char *wrong : {"{}", "[1]", "[[1]]", "["}) {
    bytes = archiveOf(weights, "none", wrong);
    EXPECT_FALSE(tensors(bytes, error));
    EXPECT_TRUE(error.starts_with("extra/shardc_ties.json: ")) << error;
  }
}

TEST(Archive, ErrorsNameTheTensor) {
  EXPECT_EQ(errorOf({{"w", "weight_0", "[2, 4]", "[4, 1]"}}),
            "tensor 'w' needs 32 bytes of 'data/weights/weight_0', which has 24");
  EXPECT_EQ(errorOf({{"w", "weight_0", "[2, 3]", "[3, 1]", "1"}}),
            "tensor 'w' needs 28 bytes of 'data/weights/weight_0', which has 24");
  EXPECT_EQ(errorOf({{"w", "weight_0", "[2, 3]", "[-3, 1]"}}),
            "tensor 'w' has a negative size, stride or offset");
  EXPECT_EQ(errorOf({{"w", "weight_0", "[2, 3]", "[1]"}}), "tensor 'w' has 2 sizes but 1 strides");
  EXPECT_EQ(errorOf({{"w", "weight_0", "[4611686018427387904, 8]", "[0, 0]"}}),
            "tensor 'w' is larger than 64 bits can count");
  EXPECT_EQ(errorOf({{"w", "weight_0", "[2, 3]", "[3, 1]", "0", "99"}}),
            "tensor 'w' has the unknown element type code 99");
  EXPECT_EQ(errorOf({{"w", "weight_7"}}),
            "the record 'data/weights/weight_7' of tensor 'w' is missing");
  EXPECT_EQ(errorOf({{"w", "weight_0"}, {"w", "weight_0"}}), "tensor 'w' appears twice");
  EXPECT_EQ(errorOf({{"w", "weight_0", "[2, 3]", "[3, 1]", "0", "7", "true"}}),
            "'w' is stored as a pickle, which is never executed; export it as a plain tensor");
}

TEST(Archive, OtherArchivesAreExplained) {
  std::string error;
  ZipWriter old;
  old.add("serialized_exported_program.json", "{}");
  EXPECT_FALSE(Pt2Archive::read(asBytes(old.finish()), error));
  EXPECT_NE(error.find("before 2.8"), std::string::npos) << error;
  ZipWriter big;
  big.add("m/models/model.json", "{}");
  big.add("m/byteorder", "big");
  std::string bytes = big.finish();
  EXPECT_FALSE(Pt2Archive::read(asBytes(bytes), error));
  EXPECT_NE(error.find("little-endian"), std::string::npos) << error;
}

TEST(Archive, ACorruptProgramIsFound) {
  std::string error, bytes = archiveOf({});
  bytes[bytes.rfind("{}")] = '[';
  auto archive = Pt2Archive::read(asBytes(bytes), error);
  ASSERT_TRUE(archive) << error;
  EXPECT_FALSE(archive->programJson(error));
  EXPECT_EQ(error, "the record 'models/model.json' is corrupt: its checksum does not match");
}

} // namespace
