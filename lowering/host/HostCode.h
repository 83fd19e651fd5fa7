// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code of the host: from LLVM's dialect or LLVM IR to object files, within the process.

#ifndef SHARDC_LOWERING_HOST_HOSTCODE_H
#define SHARDC_LOWERING_HOST_HOSTCODE_H

#include "lowering/target/Backend.h"

namespace llvm {
class Module;
} // namespace llvm

namespace shardc::host {

/// Runs LLVM's -O3 pipeline on `module` for the processor and emits an ELF object. `module` gets
/// the processor's triple, data layout and features; it is changed by the optimisation.
llvm::Expected<target::ObjectCode> emitObject(llvm::Module &module,
                                              const target::Processor &processor);

/// The functions of a lowered module as one object. What the tables of the artifact name (entries,
/// plans, the table of collectives) stays visible to the other objects, nothing else.
llvm::Expected<target::ObjectCode>
emitObject(mlir::ModuleOp lowered, const target::Processor &processor, llvm::StringRef name);

} // namespace shardc::host

#endif // SHARDC_LOWERING_HOST_HOSTCODE_H
