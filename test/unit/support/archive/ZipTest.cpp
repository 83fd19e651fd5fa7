// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/archive/Zip.h"
#include "test/unit/support/archive/ZipWriter.h"

#include <gtest/gtest.h>

using namespace shardc;
using shardc::test::asBytes;
using shardc::test::ZipWriter;

namespace {

std::string text(const ZipRecord *record) {
  return record ? std::string(reinterpret_cast<const char *>(record->bytes.data()),
                              record->bytes.size())
                : "(none)";
}

std::string readError(const std::string &bytes) {
  std::string error;
  EXPECT_FALSE(ZipArchive::read(asBytes(bytes), error));
  return error;
}

class Zip : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Both, Zip, testing::Bool());

TEST_P(Zip, FindsRecordsInPlace) {
  ZipWriter writer;
  writer.zip64 = GetParam();
  writer.add("a/x", "hello");
  writer.add("a/empty", "");
  std::string bytes = writer.finish("PK\x05\x06 in a comment is no end record");
  std::string error;
  auto archive = ZipArchive::read(asBytes(bytes), error);
  ASSERT_TRUE(archive) << error;
  EXPECT_EQ(text(archive->find("a/x")), "hello");
  EXPECT_EQ(text(archive->find("a/empty")), "");
  EXPECT_EQ(archive->find("a/y"), nullptr);
  EXPECT_EQ(archive->find("a/x")->bytes.data(), asBytes(bytes).data() + bytes.find("hello"));
  EXPECT_EQ(archive->find("a/x")->crc, crc32(archive->find("a/x")->bytes));
}

TEST_P(Zip, EveryTruncationIsAnError) {
  ZipWriter writer;
  writer.zip64 = GetParam();
  writer.add("a/x", "hello");
  writer.add("a/y", "world");
  std::string bytes = writer.finish();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(readError(bytes.substr(0, size)), "") << size;
}

TEST(ZipErrors, AreNamed) {
  ZipWriter deflated;
  deflated.method = 8;
  deflated.add("x", "hello");
  EXPECT_EQ(readError(deflated.finish()),
            "entry 0 'x': the record is compressed; records must be stored");
  ZipWriter encrypted;
  encrypted.flags = 1;
  encrypted.add("x", "hello");
  EXPECT_EQ(readError(encrypted.finish()), "entry 0 'x': the record is encrypted");
  ZipWriter twice;
  twice.add("x", "hello");
  twice.add("x", "world");
  EXPECT_EQ(readError(twice.finish()), "entry 1 'x': the name appears twice");
  EXPECT_EQ(readError("some text"), "not a zip archive");
}

TEST(ZipErrors, LengthsThatOverflowAreRefused) {
  ZipWriter writer;
  writer.zip64 = true;
  writer.add("x", "hello");
  std::string bytes = writer.finish();
  size_t entry = bytes.find("PK\x01\x02");
  size_t extra = entry + 46 + 1 + 4; // name of one byte, then tag and size
  for (size_t field = 0; field < 3; ++field)
    for (uint64_t value : {~uint64_t(0), uint64_t(1) << 63, ~uint64_t(0) - 40}) {
      std::string broken = bytes;
      for (int i = 0; i < 8; ++i)
        broken[extra + 8 * field + i] = char(value >> (8 * i));
      EXPECT_NE(readError(broken), "");
    }
}

// The check value of CRC-32/ISO-HDLC, and lengths around the eight bytes that go at once.
TEST(Crc, AgreesWithThePolynomial) {
  EXPECT_EQ(crc32(asBytes("123456789")), 0xcbf43926u);
  EXPECT_EQ(crc32({}), 0u);
  for (size_t size = 0; size < 40; ++size) {
    std::string data;
    for (size_t i = 0; i < size; ++i)
      data.push_back(char(37 * i + 11));
    ZipWriter writer;
    writer.add("x", data);
    std::string bytes = writer.finish(), error;
    auto archive = ZipArchive::read(asBytes(bytes), error);
    ASSERT_TRUE(archive) << error;
    EXPECT_EQ(archive->find("x")->crc, crc32(asBytes(data))) << size;
  }
}

} // namespace
