// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Images that modules are loaded from: LLVM bitcode for nvptx64, or its text. Kernels are compiled
// for the host when they are launched first.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_IMAGE_H
#define SHARDC_TOOLS_CUDA_EMULATOR_IMAGE_H

#include "tools/cuda-emulator/Block.h"

#include <memory>
#include <string>
#include <vector>

namespace shardc::emulator {

struct KernelFacts {
  std::string name;
  std::vector<uint32_t> paramBytes;
  uint32_t maxThreads = 1024; ///< of a block, as the kernel declares
  uint32_t sharedBytes = 0;   ///< static
};

class Image {
public:
  /// Takes the image that begins at `data`: bitcode (with or without a wrapper), of so many bytes
  /// (0: not known), or text that ends with a zero. An image that was loaded before is not read
  /// again. Null and an error text if it is none.
  static std::shared_ptr<Image> load(const void *data, size_t bytes, std::string &error);

  const std::vector<KernelFacts> &kernels() const { return facts; }
  /// Null with an error that names all that is not supported.
  std::shared_ptr<const CompiledKernel> compile(const std::string &name, std::string &error);
  /// The same, without what was compiled before: with what the settings leave out now.
  std::shared_ptr<const CompiledKernel> compileAnew(const std::string &name,
                                                    std::string &error) const;
  /// Compiles anew from now on.
  static void forgetCompiled();

private:
  std::string bitcode;
  std::vector<KernelFacts> facts;
  std::vector<std::pair<std::string, std::shared_ptr<const CompiledKernel>>> compiled;
};

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_IMAGE_H
