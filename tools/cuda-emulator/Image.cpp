// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cuda-emulator/Image.h"
#include "tools/cuda-emulator/Compile.h"

#include <llvm/AsmParser/Parser.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

#include <cstring>
#include <map>

namespace shardc::emulator {
namespace {

uint32_t word(const uint8_t *at) {
  uint32_t value;
  std::memcpy(&value, at, 4);
  return value;
}

/// A number of a bit stream in pieces of `width` bits, the highest of which says that more follow.
uint32_t pieces(uint64_t bits, unsigned &position, unsigned width) {
  uint32_t value = 0;
  for (unsigned shift = 0; position + width <= 64; shift += width - 1) {
    uint32_t piece = bits >> position & ((1u << width) - 1);
    position += width;
    value |= (piece & ((1u << (width - 1)) - 1)) << shift;
    if (!(piece >> (width - 1)))
      break;
  }
  return value;
}

/// Bytes of the bitcode at `data`; 0: it is none. The driver's function gets no size. A wrapper has
/// it; otherwise the blocks at the top are walked up to the table of strings, which is the last.
size_t bitcodeBytes(const uint8_t *data) {
  constexpr uint32_t wrapperMagic = 0x0b17c0de, magic = 0xdec04342;
  constexpr uint32_t identification = 13, module = 8, strings = 23, symbols = 25;
  if (word(data) == wrapperMagic)
    return word(data + 8) + word(data + 12);
  if (word(data) != magic)
    return 0;
  for (size_t at = 4;;) {
    uint64_t bits;
    std::memcpy(&bits, data + at, 8);
    unsigned position = 2;
    uint32_t id = pieces(bits, position, 8);
    pieces(bits, position, 4);
    bool known = id == identification || id == module || id == strings || id == symbols;
    if ((bits & 3) != 1 || !known) // no block begins here
      return 0;
    size_t header = (position + 31) / 32 * 4;
    at += header + 4 + size_t(word(data + at + header)) * 4;
    if (id == strings)
      return at;
  }
}

std::string bitcodeOfText(const char *text, std::string &error) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, diagnostic, context);
  std::string out;
  if (!module) {
    error = "line " + std::to_string(diagnostic.getLineNo()) + ": " + diagnostic.getMessage().str();
    return out;
  }
  llvm::raw_string_ostream stream(out);
  llvm::WriteBitcodeToFile(*module, stream);
  return out;
}

uint32_t maxThreadsOf(const llvm::Function &function) {
  for (const char *name : {"nvvm.reqntid", "nvvm.maxntid"}) {
    llvm::StringRef text = function.getFnAttribute(name).getValueAsString();
    uint32_t threads = 1;
    bool any = false;
    while (!text.empty()) {
      auto [first, rest] = text.split(',');
      uint32_t n;
      if (first.trim().getAsInteger(10, n))
        break;
      threads *= n;
      any = true;
      text = rest;
    }
    if (any)
      return threads;
  }
  return maxThreads;
}

std::map<size_t, std::vector<std::shared_ptr<Image>>> &loaded() {
  static auto *images = new std::map<size_t, std::vector<std::shared_ptr<Image>>>;
  return *images;
}

} // namespace

std::shared_ptr<Image> Image::load(const void *data, size_t size, std::string &error) {
  const uint8_t *bytes = static_cast<const uint8_t *>(data);
  std::string bitcode;
  if (size && size < 20) {
    error = "it has " + std::to_string(size) + " bytes only";
    return nullptr;
  }
  if (size_t n = bitcodeBytes(bytes)) {
    if (size && n > size) {
      error = "the bitcode ends too early";
      return nullptr;
    }
    bitcode.assign(reinterpret_cast<const char *>(bytes), n);
  } else if (size && bytes[size - 1] != 0) { // text ends with a zero
    error = "it is no LLVM bitcode";
    return nullptr;
  } else if (word(bytes) == 0x464c457f || word(bytes) == 0xba55ed50) {
    error = "the emulated device takes LLVM bitcode, not code for a chip";
    return nullptr;
  } else {
    bitcode = bitcodeOfText(static_cast<const char *>(data), error);
    if (bitcode.empty())
      return nullptr;
  }
  std::vector<std::shared_ptr<Image>> &same = loaded()[std::hash<std::string>()(bitcode)];
  for (const std::shared_ptr<Image> &image : same)
    if (image->bitcode == bitcode)
      return image;
  auto image = std::make_shared<Image>();
  image->bitcode = std::move(bitcode);
  llvm::LLVMContext context;
  auto module = llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(image->bitcode, "image"), context);
  if (!module) {
    error = llvm::toString(module.takeError());
    return nullptr;
  }
  const llvm::DataLayout &layout = (*module)->getDataLayout();
  for (llvm::Function &function : **module) {
    if (function.getCallingConv() != llvm::CallingConv::PTX_Kernel)
      continue;
    KernelFacts kernel;
    kernel.name = function.getName().str();
    kernel.maxThreads = maxThreadsOf(function);
    for (llvm::Argument &argument : function.args())
      kernel.paramBytes.push_back(uint32_t(layout.getTypeAllocSize(
          argument.hasByValAttr() ? argument.getParamByValType() : argument.getType())));
    image->facts.push_back(std::move(kernel));
  }
  same.push_back(image);
  return image;
}

std::shared_ptr<const CompiledKernel> Image::compile(const std::string &name, std::string &error) {
  for (auto &[known, kernel] : compiled)
    if (known == name)
      return kernel;
  std::shared_ptr<const CompiledKernel> kernel = compileAnew(name, error);
  if (kernel)
    compiled.push_back({name, kernel});
  return kernel;
}

std::shared_ptr<const CompiledKernel> Image::compileAnew(const std::string &name,
                                                         std::string &error) const {
  return compileKernel(bitcode, name, error);
}

void Image::forgetCompiled() {
  for (auto &[hash, images] : loaded())
    for (const std::shared_ptr<Image> &image : images)
      image->compiled.clear();
}

} // namespace shardc::emulator
