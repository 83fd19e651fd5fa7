// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several launches, and in a launch several threads and several ops, may write parts of one
// destination: whether each element is written by one of them.

#ifndef SHARDC_PASSES_VERIFY_DEVICEWRITES_H
#define SHARDC_PASSES_VERIFY_DEVICEWRITES_H

#include "passes/verify/KernelAccesses.h"
#include "passes/verify/SizeTerms.h"
#include "passes/verify/Variation.h"

#include <memory>

namespace shardc {

class DeviceWrites {
public:
  using Report = llvm::function_ref<void(mlir::Operation *, const llvm::Twine &)>;

  /// `writes` are all writes of one memory (but for updates), each in a launch. Reports
  ///
  /// - a second launch that writes, unless one of the two is in the other branch of a condition;
  /// - a write that all threads of a block do at one place, or all blocks, or all iterations of a
  ///   loop;
  /// - two ops of a launch that write one element in one thread.
  void check(llvm::ArrayRef<MemoryAccess> writes, llvm::StringRef memory, Report report);

  /// Writes of which it could not be shown that they are apart from others of their launch.
  int64_t getNumUnproven() const { return unproven; }

private:
  struct Part;
  using Group = std::vector<SizeSum>;

  void checkLaunches(llvm::ArrayRef<MemoryAccess> writes, llvm::StringRef memory, Report report);
  void checkThreads(const MemoryAccess &write, llvm::StringRef memory, Report report);
  void checkLoops(const MemoryAccess &write, llvm::StringRef memory, Report report);
  void checkParts(llvm::ArrayRef<MemoryAccess> writes, llvm::StringRef memory, Report report);
  const Variation &variationIn(mlir::Region &code, mlir::Operation *owner);
  bool excludeEachOther(mlir::Operation *one, mlir::Operation *other);
  llvm::SmallVector<std::pair<mlir::Value, bool>> conditionsOf(mlir::Operation *op);
  bool contradict(std::pair<mlir::Value, bool> one, std::pair<mlir::Value, bool> other);
  Part partOf(mlir::Operation *op, Group &group);

  SizeTerms terms;
  /// Of the bodies of launches and of loops.
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<Variation>> variations;
  int64_t unproven = 0;
};

} // namespace shardc

#endif // SHARDC_PASSES_VERIFY_DEVICEWRITES_H
