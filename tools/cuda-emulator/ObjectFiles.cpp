// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cuda-emulator/ObjectFiles.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Path.h>
#include <llvm/Support/SHA1.h>
#include <llvm/Support/raw_ostream.h>

namespace shardc::emulator {

ObjectFiles::ObjectFiles(std::string folder, std::string processor)
    : folder(std::move(folder)), processor(std::move(processor)) {
  llvm::sys::fs::create_directories(this->folder);
}

std::string ObjectFiles::pathOf(const llvm::Module &module) const {
  llvm::SmallString<0> bitcode;
  llvm::raw_svector_ostream stream(bitcode);
  llvm::WriteBitcodeToFile(module, stream);
  llvm::SHA1 digest;
  digest.update(LLVM_VERSION_STRING);
  digest.update(processor);
  digest.update(bitcode);
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, llvm::toHex(digest.final(), /*LowerCase=*/true) + ".o");
  return std::string(path);
}

void ObjectFiles::notifyObjectCompiled(const llvm::Module *module, llvm::MemoryBufferRef object) {
  // The compiler changes a module: its digest is the one that getObject found.
  std::string path = module->getModuleIdentifier();
  // Others may write the same file: each writes one of its own, which then gets the name.
  llvm::consumeError(llvm::writeToOutput(path, [&](llvm::raw_ostream &stream) {
    stream << object.getBuffer();
    return llvm::Error::success();
  }));
}

std::unique_ptr<llvm::MemoryBuffer> ObjectFiles::getObject(const llvm::Module *module) {
  std::string path = pathOf(*module);
  if (auto file = llvm::MemoryBuffer::getFile(path))
    return std::move(*file);
  const_cast<llvm::Module *>(module)->setModuleIdentifier(path);
  return nullptr;
}

} // namespace shardc::emulator
