// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/archive/Safetensors.h"
#include "support/Json.h"
#include "support/archive/SafetensorsWriter.h"
#include "test/unit/support/archive/ZipWriter.h"

#include <gtest/gtest.h>

using namespace shardc;
using shardc::test::asBytes;

namespace {

std::string fileOf(const std::string &header, size_t bytes) {
  std::string out;
  for (int i = 0; i < 8; ++i)
    out.push_back(char(uint64_t(header.size()) >> (8 * i)));
  return out + header + std::string(bytes, 'x');
}

std::string errorOf(const std::string &header, size_t bytes) {
  std::string error, file = fileOf(header, bytes);
  EXPECT_FALSE(readSafetensors(asBytes(file), error)) << header;
  return error;
}

TEST(Safetensors, ReadsTensorsInTheOrderOfTheirData) {
  std::string error,
      file = fileOf(R"({"b": {"dtype": "F32", "shape": [2, 3], "data_offsets": [2, 26]},
      "__metadata__": {"format": "pt"}, "a": {"dtype": "BF16", "shape": [], "data_offsets": [0, 2]},
      "empty": {"dtype": "I64", "shape": [0, 5], "data_offsets": [26, 26]}})",
                    26);
  auto store = readSafetensors(asBytes(file), error);
  ASSERT_TRUE(store) << error;
  ASSERT_EQ(store->tensors().size(), 3u);
  EXPECT_EQ(store->tensors()[0].name, "a");
  EXPECT_EQ(store->tensors()[0].type, ElementType::BF16);
  EXPECT_EQ(store->tensors()[0].elements(), 1);
  EXPECT_EQ(store->find("b")->strides, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(store->find("b")->storage.data(), asBytes(file).data() + file.size() - 24);
  EXPECT_TRUE(store->find("empty")->hasData());
}

TEST(Safetensors, ReadsWhatIsWritten) {
  std::vector<SafetensorsEntry> entries = {{"wide \"name\"", ElementType::F64, {2, 3}},
                                           {"empty", ElementType::F32, {0, 4}},
                                           {"scalar", ElementType::I32, {}},
                                           {"narrow", ElementType::BF16, {3}}};
  std::string file = safetensorsHeader(entries, {{"format", "pt"}, {"lines", "a\nb"}}), error;
  EXPECT_EQ(file.size() % 64, 0u);
  EXPECT_EQ(entries.back().begin, 52u);
  EXPECT_EQ(entries.back().end, 58u);
  file.resize(file.size() + entries.back().end, 'x');
  auto store = readSafetensors(asBytes(file), error);
  ASSERT_TRUE(store) << error;
  ASSERT_EQ(store->tensors().size(), 4u);
  for (const SafetensorsEntry &entry : entries) {
    const StoredTensor *tensor = store->find(entry.name);
    ASSERT_TRUE(tensor) << entry.name;
    EXPECT_EQ(tensor->type, entry.type);
    EXPECT_EQ(tensor->sizes, entry.sizes);
  }
  EXPECT_EQ(store->metadata("lines"), "a\nb");
  EXPECT_EQ(store->metadata("absent"), "");
}

TEST(Safetensors, RefusesWhatDoesNotFit) {
  EXPECT_EQ(errorOf(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 7]}})", 7),
            "tensor 'a' has 7 bytes, which is not its shape's size");
  EXPECT_EQ(errorOf(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", 7),
            "tensor 'a' lies outside the file");
  EXPECT_EQ(errorOf(R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}})", 3),
            "tensor 'a' leaves a hole in the data or overlaps another");
  EXPECT_EQ(errorOf(R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
                        "b": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}})",
                    3),
            "tensor 'b' leaves a hole in the data or overlaps another");
  EXPECT_EQ(errorOf(R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}})", 3),
            "1 bytes after the last tensor belong to none");
  EXPECT_EQ(errorOf(R"({"a": {"dtype": "F4", "shape": [2], "data_offsets": [0, 2]}})", 2),
            "tensor 'a' has the unknown dtype 'F4'");
  EXPECT_EQ(errorOf(R"({"a": {"dtype": "U8", "shape": [4294967296, 4294967296, 4],
                        "data_offsets": [0, 0]}})",
                    0),
            "tensor 'a' has no valid shape");
  EXPECT_NE(errorOf("{\"a\"", 0), "");
  EXPECT_NE(errorOf("[]", 0), "");
}

TEST(Safetensors, TruncationsAreErrors) {
  std::string file = fileOf(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", 8);
  for (size_t size = 0; size < file.size(); ++size) {
    std::string error, cut = file.substr(0, size);
    EXPECT_FALSE(readSafetensors(asBytes(cut), error)) << size;
    EXPECT_NE(error, "");
  }
}

TEST(Json, WalksAndRefuses) {
  std::string error;
  auto document = JsonDocument::parse(
      R"({"a": [1, -2, 3.5, "q\u00e9", null, true, [], {}], "b": {"c": 18446744073709551615}})",
      error);
  ASSERT_TRUE(document) << error;
  JsonValue a = document->root()["a"];
  ASSERT_EQ(a.size(), 8u);
  std::vector<JsonValue> items;
  for (JsonValue element : a.elements())
    items.push_back(element);
  ASSERT_EQ(items.size(), 8u);
  EXPECT_EQ(items[0].integer(), 1);
  EXPECT_EQ(items[1].integer(), -2);
  EXPECT_EQ(items[2].real(), 3.5);
  EXPECT_FALSE(items[2].integer());
  EXPECT_EQ(items[3].string(), "q\xc3\xa9");
  EXPECT_TRUE(items[4].isNull() && items[5].boolean() == true && items[7].isObject());
  EXPECT_EQ(document->root()["b"]["c"].real(), 18446744073709551615.0);
  EXPECT_FALSE(document->root()["x"]["y"].exists());
  EXPECT_TRUE(JsonDocument::parse(std::string(128, '[') + std::string(128, ']'), error));
  EXPECT_FALSE(JsonDocument::parse(std::string(129, '[') + std::string(129, ']'), error));
  EXPECT_FALSE(JsonDocument::parse("{\"a\": 1", error));
  EXPECT_FALSE(JsonDocument::parse("\"\xff\"", error));
}

TEST(Json, IntegersOfAllSizes) {
  std::vector<int64_t> values = {0, 1, -1, INT32_MAX, INT32_MIN, int64_t(UINT32_MAX) + 1};
  for (int bits : {31, 32, 33, 59, 60, 61, 62}) {
    values.push_back((int64_t(1) << bits) - 1);
    values.push_back(int64_t(1) << bits);
    values.push_back(-(int64_t(1) << bits));
    values.push_back(-(int64_t(1) << bits) - 1);
  }
  values.push_back(INT64_MAX);
  values.push_back(INT64_MIN);
  std::string text;
  for (int64_t value : values)
    text += (text.empty() ? "[" : ", ") + std::to_string(value);
  std::string error;
  auto document = JsonDocument::parse(text + "]", error);
  ASSERT_TRUE(document) << error;
  size_t i = 0;
  for (JsonValue element : document->root().elements()) {
    EXPECT_EQ(element.integer(), values[i]);
    EXPECT_EQ(element.real(), double(values[i]));
    ++i;
  }
  EXPECT_EQ(i, values.size());
}

TEST(Json, StringsThatRepeat) {
  std::string text = "[";
  for (int i = 0; i != 20000; ++i)
    text += R"({"name": "v)" + std::to_string(i % 7000) + R"(", "": ""},)";
  text.back() = ']';
  std::string error;
  auto document = JsonDocument::parse(text, error);
  ASSERT_TRUE(document) << error;
  int i = 0;
  for (JsonValue element : document->root().elements()) {
    EXPECT_EQ(element["name"].string(), "v" + std::to_string(i++ % 7000));
    EXPECT_EQ(element[""].string(), "");
  }
  EXPECT_EQ(i, 20000);
}

} // namespace
