// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A processor of the host: it runs the host program of every target, and the kernels of the CPU's.

#ifndef SHARDC_LOWERING_TARGET_PROCESSOR_H
#define SHARDC_LOWERING_TARGET_PROCESSOR_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <vector>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace shardc::target {

struct Processor {
  std::string triple;
  /// LLVM's name of the processor and its feature string ("+avx2,-avx512f,...").
  std::string name;
  std::string features;
  /// Width of the widest vector register worth using, in bits: 512, 256 or 128.
  unsigned vectorBits = 128;
  unsigned vectorRegisters = 16;
  /// Features a machine must have to run the code, by the names of /proc/cpuinfo (e.g. "avx512bw"):
  /// those that generated code may use and that the processor has.
  std::vector<std::string> required;

  bool hasFeature(llvm::StringRef feature) const;
};

/// The machine the compiler runs on for an empty name, or a processor that LLVM knows of the same
/// architecture (e.g. "x86-64-v3", "skylake-avx512"). An error lists the nearest names.
llvm::Expected<Processor> resolveProcessor(llvm::StringRef name);

/// The processor of which the first three members are known.
llvm::Expected<Processor> makeProcessor(std::string triple, std::string name, std::string features);

/// For code generation at -O3, position independent.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const Processor &processor);

} // namespace shardc::target

#endif // SHARDC_LOWERING_TARGET_PROCESSOR_H
