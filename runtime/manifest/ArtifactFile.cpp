// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/manifest/ArtifactFile.h"

#include "runtime/abi/Seal.h"
#include "runtime/support/Failure.h"
#include "support/MappedFile.h"

#include <elf.h>
#include <string_view>

namespace shardc::rt {

namespace {

#if defined(__x86_64__)
constexpr uint16_t hostMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t hostMachine = EM_AARCH64;
#else
constexpr uint16_t hostMachine = EM_NONE; // the dynamic linker has to find out
#endif

class Object {
public:
  Object(std::string_view bytes, const std::string &path) : bytes(bytes), path(path) {}

  void check() {
    Elf64_Ehdr header{};
    if (bytes.size() < SELFMAG || bytes.substr(0, SELFMAG) != std::string_view(ELFMAG, SELFMAG))
      fail("it is no shared object");
    if (!read(header, 0))
      fail("it is truncated");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_type != ET_DYN)
      fail("it is no shared object");
    if (hostMachine != EM_NONE && header.e_machine != hostMachine)
      throw Failure(SHARDRT_INCOMPATIBLE,
                    path + ": it was compiled for another architecture (ELF machine " +
                        std::to_string(header.e_machine) + ", this one is " +
                        std::to_string(hostMachine) + ")");
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0)
      fail("it is corrupt: its program headers cannot be read");
    for (uint16_t i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr segment{};
      if (!read(segment, header.e_phoff + uint64_t(i) * sizeof segment) ||
          !inside(segment.p_offset, segment.p_filesz))
        fail("it is truncated: segment " + std::to_string(i) + " lies beyond its end");
    }
    // The table of sections comes last in a file: it shows a cut that spares the segments.
    uint64_t tableBytes = uint64_t(header.e_shnum) * header.e_shentsize;
    if (!inside(header.e_shoff, tableBytes))
      fail("it is truncated: its table of sections lies beyond its end");
    checkSeal(header.e_shoff + tableBytes);
  }

private:
  [[noreturn]] void fail(const std::string &what) const {
    throw Failure(SHARDRT_BAD_FILE, path + ": " + what);
  }
  bool inside(uint64_t offset, uint64_t size) const {
    return offset <= bytes.size() && size <= bytes.size() - offset;
  }
  template <typename T> bool read(T &value, uint64_t offset) const {
    if (!inside(offset, sizeof value))
      return false;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return true;
  }
  /// Nothing may follow the object but a seal that fits it.
  void checkSeal(uint64_t objectBytes) const {
    if (objectBytes == bytes.size())
      return;
    ArtifactSeal seal{};
    if (bytes.size() - objectBytes != sizeof seal || !read(seal, objectBytes) ||
        std::memcmp(seal.magic, sealMagic, sizeof seal.magic) != 0 || seal.bytes != objectBytes ||
        seal.checksum != sealChecksum(bytes.substr(0, objectBytes)))
      fail("it is corrupt: its checksum does not fit its contents");
  }

  std::string_view bytes;
  const std::string &path;
};

} // namespace

void checkArtifactFile(const std::string &path) {
  std::string error;
  std::shared_ptr<const MappedFile> file = MappedFile::open(path, error);
  if (!file)
    throw Failure(SHARDRT_BAD_FILE, error);
  Object({reinterpret_cast<const char *>(file->bytes().data()), file->bytes().size()}, path)
      .check();
}

} // namespace shardc::rt
