// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes small zip archives for tests, following the format's description rather than our reader.
#ifndef SHARDC_TEST_UNIT_SUPPORT_ARCHIVE_ZIPWRITER_H
#define SHARDC_TEST_UNIT_SUPPORT_ARCHIVE_ZIPWRITER_H

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shardc::test {

class ZipWriter {
public:
  bool zip64 = false;    // every entry and the end record use their 64-bit forms
  uint16_t method = 0;   // 8: says that records are deflated
  uint16_t flags = 0x08; // sizes only in the directory, as streaming writers do

  void add(const std::string &name, const std::string &data) {
    uint32_t offset = uint32_t(bytes.size());
    put(bytes, 0x04034b50, 4), put(bytes, 20, 2), put(bytes, flags, 2), put(bytes, method, 2);
    put(bytes, 0, 4);                                     // time and date
    put(bytes, 0, 4), put(bytes, 0, 4), put(bytes, 0, 4); // checksum and sizes: unknown yet
    put(bytes, name.size(), 2), put(bytes, 5, 2);         // an extra field of five bytes
    bytes += name + "\x50\x41\x01" + std::string(2, '\0') + data;
    put(directory, 0x02014b50, 4), put(directory, 20, 2), put(directory, 20, 2);
    put(directory, flags, 2), put(directory, method, 2), put(directory, 0, 4);
    put(directory, checksum(data), 4);
    put(directory, zip64 ? 0xffffffff : data.size(), 4);
    put(directory, zip64 ? 0xffffffff : data.size(), 4);
    put(directory, name.size(), 2), put(directory, zip64 ? 28 : 0, 2), put(directory, 0, 2);
    put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 4);
    put(directory, zip64 ? 0xffffffff : offset, 4);
    directory += name;
    if (zip64) {
      put(directory, 1, 2), put(directory, 24, 2);
      put(directory, data.size(), 8), put(directory, data.size(), 8), put(directory, offset, 8);
    }
    ++count;
  }

  std::string finish(const std::string &comment = "") {
    std::string out = bytes + directory;
    if (zip64) {
      uint64_t end = out.size();
      put(out, 0x06064b50, 4), put(out, 44, 8), put(out, 45, 2), put(out, 45, 2);
      put(out, 0, 4), put(out, 0, 4), put(out, count, 8), put(out, count, 8);
      put(out, directory.size(), 8), put(out, bytes.size(), 8);
      put(out, 0x07064b50, 4), put(out, 0, 4), put(out, end, 8), put(out, 1, 4);
    }
    put(out, 0x06054b50, 4), put(out, 0, 2), put(out, 0, 2);
    put(out, zip64 ? 0xffff : count, 2), put(out, zip64 ? 0xffff : count, 2);
    put(out, zip64 ? 0xffffffff : directory.size(), 4);
    put(out, zip64 ? 0xffffffff : bytes.size(), 4);
    put(out, comment.size(), 2);
    return out + comment;
  }

private:
  static void put(std::string &out, uint64_t value, int size) {
    for (int i = 0; i < size; ++i)
      out.push_back(char(value >> (8 * i)));
  }
  // Bit by bit from the polynomial.
  static uint32_t checksum(const std::string &data) {
    uint32_t value = 0xffffffff;
    for (unsigned char c : data) {
      value ^= c;
      for (int bit = 0; bit < 8; ++bit)
        value = (value >> 1) ^ (value & 1 ? 0xedb88320u : 0);
    }
    return ~value;
  }

  std::string bytes, directory;
  uint64_t count = 0;
};

inline std::span<const std::byte> asBytes(const std::string &text) {
  return std::as_bytes(std::span(text));
}

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_SUPPORT_ARCHIVE_ZIPWRITER_H
