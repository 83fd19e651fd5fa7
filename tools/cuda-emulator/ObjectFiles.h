// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code of kernels, kept in a folder for other processes (CUDA_EMULATED_CACHE).
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_OBJECTFILES_H
#define SHARDC_TOOLS_CUDA_EMULATOR_OBJECTFILES_H

#include <llvm/ExecutionEngine/ObjectCache.h>

#include <string>

namespace shardc::emulator {

/// A file for each module, named by a digest of its bitcode, this library's LLVM and the processor.
/// What cannot be read is compiled, and what cannot be written is not kept: neither is an error.
class ObjectFiles : public llvm::ObjectCache {
public:
  /// Makes the folder if there is none.
  ObjectFiles(std::string folder, std::string processor);

  void notifyObjectCompiled(const llvm::Module *module, llvm::MemoryBufferRef object) override;
  std::unique_ptr<llvm::MemoryBuffer> getObject(const llvm::Module *module) override;

private:
  std::string pathOf(const llvm::Module &module) const;

  std::string folder, processor;
};

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_OBJECTFILES_H
