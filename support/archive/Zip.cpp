// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/archive/Zip.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace shardc {
namespace {

static_assert(std::endian::native == std::endian::little, "zip fields are read as they lie");

using Bytes = std::span<const std::byte>;

constexpr uint32_t localSignature = 0x04034b50, entrySignature = 0x02014b50,
                   endSignature = 0x06054b50, end64Signature = 0x06064b50,
                   locatorSignature = 0x07064b50;
constexpr size_t localBytes = 30, entryBytes = 46, endBytes = 22, end64Bytes = 56,
                 locatorBytes = 20;
constexpr uint16_t zip64Tag = 1;

// The caller has checked that `at + sizeof(T)` is inside.
template <typename T> T load(Bytes bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// Whether [at, at + size) lies in `total` bytes, without overflow.
bool inside(uint64_t at, uint64_t size, uint64_t total) {
  return at <= total && size <= total - at;
}

struct Directory {
  uint64_t offset = 0, size = 0, count = 0;
};

// The end record is the last one whose comment ends with the file.
std::optional<size_t> findEnd(Bytes bytes) {
  if (bytes.size() < endBytes)
    return std::nullopt;
  size_t last = bytes.size() - endBytes;
  size_t first = last > 0xffff ? last - 0xffff : 0;
  for (size_t at = last + 1; at-- > first;)
    if (load<uint32_t>(bytes, at) == endSignature &&
        load<uint16_t>(bytes, at + 20) == bytes.size() - at - endBytes)
      return at;
  return std::nullopt;
}

bool findDirectory(Bytes bytes, Directory &directory, std::string &error) {
  std::optional<size_t> end = findEnd(bytes);
  if (!end) {
    error = "no end-of-directory record: the archive is truncated";
    return false;
  }
  if (load<uint16_t>(bytes, *end + 4) != 0 && load<uint16_t>(bytes, *end + 4) != 0xffff) {
    error = "the archive is split over several files";
    return false;
  }
  directory.count = load<uint16_t>(bytes, *end + 10);
  directory.size = load<uint32_t>(bytes, *end + 12);
  directory.offset = load<uint32_t>(bytes, *end + 16);
  uint64_t limit = *end;
  bool is64 =
      directory.count == 0xffff || directory.size == 0xffffffff || directory.offset == 0xffffffff;
  if (*end >= locatorBytes && load<uint32_t>(bytes, *end - locatorBytes) == locatorSignature) {
    uint64_t at = load<uint64_t>(bytes, *end - locatorBytes + 8);
    if (!inside(at, end64Bytes, *end - locatorBytes) ||
        load<uint32_t>(bytes, at) != end64Signature) {
      error = "the zip64 end-of-directory record lies outside the file";
      return false;
    }
    directory.count = load<uint64_t>(bytes, at + 32);
    directory.size = load<uint64_t>(bytes, at + 40);
    directory.offset = load<uint64_t>(bytes, at + 48);
    limit = at;
  } else if (is64) {
    error = "the zip64 end-of-directory record is missing";
    return false;
  }
  if (!inside(directory.offset, directory.size, limit)) {
    error = "the directory lies outside the file";
    return false;
  }
  if (directory.count > directory.size / entryBytes) {
    error = "the directory has fewer entries than it says";
    return false;
  }
  return true;
}

struct Entry {
  uint64_t size = 0, stored = 0, header = 0;
};

// Replaces the fields that are all ones by those of the zip64 extra field (4.5.3: present in this
// order, each only if its 32-bit field is all ones).
bool readZip64(Bytes extra, Entry &entry) {
  bool wanted =
      entry.size == 0xffffffff || entry.stored == 0xffffffff || entry.header == 0xffffffff;
  if (!wanted)
    return true;
  for (size_t at = 0; inside(at, 4, extra.size());) {
    size_t tag = load<uint16_t>(extra, at), size = load<uint16_t>(extra, at + 2);
    at += 4;
    if (!inside(at, size, extra.size()))
      return false;
    if (tag != zip64Tag) {
      at += size;
      continue;
    }
    size_t end = at + size;
    for (uint64_t *field : {&entry.size, &entry.stored, &entry.header}) {
      if (*field != 0xffffffff)
        continue;
      if (end - at < 8)
        return false;
      *field = load<uint64_t>(extra, at);
      at += 8;
    }
    return true;
  }
  return false;
}

} // namespace

bool ZipArchive::hasMagic(Bytes bytes) {
  return bytes.size() >= 4 &&
         (load<uint32_t>(bytes, 0) == localSignature || load<uint32_t>(bytes, 0) == endSignature);
}

std::optional<ZipArchive> ZipArchive::read(Bytes bytes, std::string &error, bool allowCompressed) {
  if (!hasMagic(bytes)) {
    error = "not a zip archive";
    return std::nullopt;
  }
  Directory directory;
  if (!findDirectory(bytes, directory, error))
    return std::nullopt;
  ZipArchive archive;
  archive.list.reserve(directory.count);
  archive.index.reserve(directory.count);
  Bytes entries = bytes.subspan(directory.offset, directory.size);
  size_t at = 0;
  for (uint64_t i = 0; i < directory.count; ++i) {
    auto fail = [&](std::string_view what, std::string_view name = {}) {
      error = "entry " + std::to_string(i);
      if (!name.empty())
        error.append(" '").append(name).append("'");
      error.append(": ").append(what);
      return std::nullopt;
    };
    if (!inside(at, entryBytes, entries.size()) || load<uint32_t>(entries, at) != entrySignature)
      return fail("the directory is cut off");
    uint16_t flags = load<uint16_t>(entries, at + 8), method = load<uint16_t>(entries, at + 10);
    uint32_t crc = load<uint32_t>(entries, at + 16);
    Entry entry{load<uint32_t>(entries, at + 24), load<uint32_t>(entries, at + 20),
                load<uint32_t>(entries, at + 42)};
    uint64_t nameSize = load<uint16_t>(entries, at + 28),
             extraSize = load<uint16_t>(entries, at + 30),
             commentSize = load<uint16_t>(entries, at + 32);
    at += entryBytes;
    if (!inside(at, nameSize + extraSize + commentSize, entries.size()))
      return fail("the directory is cut off");
    std::string_view name(reinterpret_cast<const char *>(entries.data() + at), nameSize);
    if (!readZip64(entries.subspan(at + nameSize, extraSize), entry))
      return fail("its zip64 field is missing or too short", name);
    at += nameSize + extraSize + commentSize;
    if (flags & 1)
      return fail("the record is encrypted", name);
    bool compressed = method == 8 && allowCompressed;
    if (method != 0 && !compressed)
      return fail("the record is compressed; records must be stored", name);
    if (entry.size != entry.stored && !compressed)
      return fail("its two sizes differ", name);
    if (!inside(entry.header, localBytes, directory.offset) ||
        load<uint32_t>(bytes, entry.header) != localSignature)
      return fail("its header lies outside the file", name);
    // The local name and extra field may be longer than the directory's: PyTorch pads them so that
    // data begin at a multiple of 64 bytes.
    uint64_t data = entry.header + localBytes + load<uint16_t>(bytes, entry.header + 26) +
                    load<uint16_t>(bytes, entry.header + 28);
    if (!inside(data, entry.stored, directory.offset))
      return fail("its data lie outside the file", name);
    if (!archive.index.emplace(name, archive.list.size()).second)
      return fail("the name appears twice", name);
    archive.list.push_back({name, bytes.subspan(data, entry.stored), crc, compressed, entry.size});
  }
  return archive;
}

const ZipRecord *ZipArchive::find(std::string_view name) const {
  auto found = index.find(name);
  return found == index.end() ? nullptr : &list[found->second];
}

namespace {
using CrcTables = std::array<std::array<uint32_t, 256>, 8>;
// tables[k][b] advances the checksum of byte b by k further zero bytes: eight bytes go at once.
// Computed when they are first needed: they would be 8 KiB of the runtime's library.
CrcTables makeCrcTables() {
  CrcTables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit)
      value = (value >> 1) ^ (value & 1 ? 0xedb88320u : 0);
    tables[0][i] = value;
  }
  for (size_t k = 1; k < 8; ++k)
    for (uint32_t i = 0; i < 256; ++i)
      tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 0xff];
  return tables;
}
} // namespace

uint32_t crc32(Bytes bytes) {
  static const CrcTables crcTables = makeCrcTables();
  uint32_t value = 0xffffffff;
  size_t at = 0;
  for (; bytes.size() - at >= 8; at += 8) {
    uint64_t word = load<uint64_t>(bytes, at) ^ value;
    value = 0;
    for (size_t k = 0; k < 8; ++k)
      value ^= crcTables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; at < bytes.size(); ++at)
    value = (value >> 8) ^ crcTables[0][(value ^ static_cast<uint32_t>(bytes[at])) & 0xff];
  return ~value;
}

} // namespace shardc
