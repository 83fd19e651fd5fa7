// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lowering/cuda/backend/Residency.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/Endian.h"

using namespace llvm;

namespace shardc::cuda {
namespace {

/// An entry of .nv.info: a form, an attribute, and the bytes of its value, where they are not in
/// the head itself.
constexpr uint8_t kFormWithValue = 4, kFrameSize = 0x11;
constexpr size_t kHeadBytes = 4;

/// A directive of PTX, before the number of blocks.
constexpr std::string_view kResidency = ".minnctapersm";

} // namespace

Expected<std::vector<std::string>> kernelsWithFrames(StringRef cubin) {
  Expected<object::ELF64LEFile> file = object::ELF64LEFile::create(cubin);
  if (!file)
    return file.takeError();
  auto sections = file->sections();
  if (!sections)
    return sections.takeError();
  std::vector<std::string> found;
  const object::ELF64LE::Shdr *info = nullptr, *symbols = nullptr;
  for (const object::ELF64LE::Shdr &section : *sections) {
    Expected<StringRef> name = file->getSectionName(section);
    if (!name)
      return name.takeError();
    if (*name == ".nv.info")
      info = &section;
    else if (section.sh_type == ELF::SHT_SYMTAB)
      symbols = &section;
  }
  if (!info || !symbols)
    return createStringError("the code of a chip does not say what its kernels need");
  Expected<ArrayRef<uint8_t>> bytes = file->getSectionContents(*info);
  if (!bytes)
    return bytes.takeError();
  Expected<StringRef> names = file->getStringTableForSymtab(*symbols, *sections);
  if (!names)
    return names.takeError();
  for (ArrayRef<uint8_t> rest = *bytes; rest.size() >= kHeadBytes;) {
    uint8_t form = rest[0], attribute = rest[1];
    size_t length = form == kFormWithValue ? support::endian::read16le(&rest[2]) : 0;
    rest = rest.drop_front(kHeadBytes);
    if (length > rest.size())
      return createStringError("what the code of a chip says of its kernels ends too early");
    if (form == kFormWithValue && attribute == kFrameSize && length >= 8 &&
        support::endian::read32le(&rest[4]) != 0) {
      auto symbol =
          file->getEntry<object::ELF64LE::Sym>(*symbols, support::endian::read32le(&rest[0]));
      if (!symbol)
        return symbol.takeError();
      Expected<StringRef> name = (*symbol)->getName(*names);
      if (!name)
        return name.takeError();
      found.push_back(name->str());
    }
    rest = rest.drop_front(length);
  }
  return found;
}

unsigned dropResidency(std::string &ptx, ArrayRef<std::string> kernels) {
  unsigned dropped = 0;
  for (const std::string &kernel : kernels) {
    size_t entry = ptx.find(".entry " + kernel + "(");
    if (entry == std::string::npos)
      continue;
    size_t body = ptx.find('{', entry), line = ptx.find(kResidency, entry);
    if (line >= body)
      continue;
    unsigned long long blocks = 0;
    StringRef number = StringRef(ptx).substr(line + kResidency.size()).ltrim();
    if (number.consumeInteger(10, blocks) || blocks <= 1)
      continue;
    ptx.erase(line, ptx.find('\n', line) + 1 - line);
    ++dropped;
  }
  return dropped;
}

} // namespace shardc::cuda
