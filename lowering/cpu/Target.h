// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CPU that code is generated for.

#ifndef SHARDC_LOWERING_CPU_TARGET_H
#define SHARDC_LOWERING_CPU_TARGET_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <vector>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace shardc::cpu {

struct Target {
  std::string triple;
  /// LLVM's name of the processor and its feature string ("+avx2,-avx512f,...").
  std::string cpu;
  std::string features;
  /// Width of the widest vector register worth using, in bits: 512, 256 or 128.
  unsigned vectorBits = 128;
  unsigned vectorRegisters = 16;
  /// Features a machine must have to run the code, by the names of /proc/cpuinfo (e.g. "avx512bw"):
  /// those of the list below that the target has.
  std::vector<std::string> required;

  bool hasFeature(llvm::StringRef name) const;
};

/// "cpu" is the machine the compiler runs on, "cpu:NAME" a processor that LLVM knows of the same
/// architecture (e.g. "cpu:x86-64-v3", "cpu:skylake-avx512"). An error lists the nearest names.
llvm::Expected<Target> resolveTarget(llvm::StringRef spec);

/// For code generation at -O3, position independent.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(const Target &target);

} // namespace shardc::cpu

#endif // SHARDC_LOWERING_CPU_TARGET_H
