// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which ops of a straight-line function share a kernel. Reads the IR, changes nothing.

#ifndef SHARDC_LOWERING_LINALG_KERNELGROUPS_H
#define SHARDC_LOWERING_LINALG_KERNELGROUPS_H

#include "lowering/target/Limits.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <vector>

namespace shardc {

struct KernelGroup {
  /// In program order. Fusible views between them are among them.
  llvm::SmallVector<mlir::Operation *> members;
  /// The member where the others have to go: with all groups gathered there, definitions are still
  /// before their users, and nothing stands between two members.
  mlir::Operation *place = nullptr;
};

struct KernelGroupOptions {
  /// Most ops of one kernel.
  unsigned maxOps = 48;
  target::Limits limits;
};

/// Greedy, in program order, near-linear: an op joins the kernels of its producers where
///  - no collective starts or is waited for between them (its place in the schedule stays),
///  - neither reads a value of the other at computed positions, through views or not,
///  - all kernels and what stays between them still have an order: nothing outside depends on the
///    one and feeds the other, be it an op, another kernel, or several,
///  - it needs more of the other than scalars that stand beside larger values there,
///  - their loops run over the same dims, so that one loop over rows computes all of them, nothing
///    twice, with temporaries of the size of a row.
std::vector<KernelGroup> formKernelGroups(mlir::func::FuncOp function,
                                          const KernelGroupOptions &options);

} // namespace shardc

#endif // SHARDC_LOWERING_LINALG_KERNELGROUPS_H
