// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rewrites a kernel for nvptx64 to code of the host that runs a thread or a block of it.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_RETARGET_H
#define SHARDC_TOOLS_CUDA_EMULATOR_RETARGET_H

#include "tools/cuda-emulator/Block.h"

#include <llvm/IR/Module.h>
#include <string>
#include <vector>

namespace shardc::emulator {

/// The address space of shared memory in a kernel.
constexpr unsigned sharedSpace = 3;

/// What a thread's code has at hand: arguments of the rewritten function.
struct ThreadValues {
  llvm::Value *block = nullptr;  ///< pointer to the Block
  llvm::Value *thread = nullptr; ///< number within the block, i32
  llvm::Value *index[3] = {};    ///< the same as three numbers
};

/// Problems with what a kernel uses, all of them.
using Problems = std::vector<std::string>;

/// Text of an instruction for reports; its number goes into calls of support functions.
uint32_t addSite(CompiledKernel &kernel, const llvm::Instruction &instruction);

/// Leaves `function`, a kernel into which everything was inlined, as thread code with these values
/// as its first arguments (block, thread, x, y, z); replaces special registers, barriers, shuffles
/// and so on by calls. Fills kernel.fibers, kernel.shared, kernel.dynamicOffset and sites.
llvm::Function *lowerKernel(llvm::Function *function, CompiledKernel &kernel, Problems &problems);

/// Replaces calls of intrinsics of the device in thread code.
void lowerIntrinsics(llvm::Function &function, const ThreadValues &values, CompiledKernel &kernel,
                     Problems &problems);

/// Counts barriers and range checks, and takes out the one that is to be dropped. Returns what now
/// stands where it was. `rangeChecks` becomes the number of the kernel's own.
std::vector<llvm::Instruction *> dropOne(llvm::Function &kernel, uint64_t &rangeChecks);

/// Inserts checks before accesses to memory.
void insertChecks(llvm::Function &function, const ThreadValues &values, CompiledKernel &kernel,
                  Problems &problems);

/// Makes the function `entry(block, thread)` that the host calls.
llvm::Function *makeEntry(llvm::Function *thread, const CompiledKernel &kernel);

/// A support function (Block.h) as the module sees it.
llvm::FunctionCallee support(llvm::Module &module, llvm::StringRef name);

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_RETARGET_H
