// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a kernel does with memory, in every form between tensors with destinations and LLVM's
// dialect. Reads the IR, changes nothing.

#ifndef SHARDC_PASSES_VERIFY_KERNELACCESSES_H
#define SHARDC_PASSES_VERIFY_KERNELACCESSES_H

#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"

#include <map>
#include <vector>

namespace shardc {

/// An op that reads or writes (a part of) the memory of an argument or of a buffer of the kernel.
struct MemoryAccess {
  mlir::Operation *op;
  bool reads = false;
  bool writes = false;
  /// What it writes is computed from what was read in the same memory: the step of a reduction.
  bool updates = false;
  /// The launch whose device code the op belongs to; null for code of the host.
  mlir::Operation *launch = nullptr;
};

class KernelAccesses {
public:
  /// Follows views, loop bodies that are functions of their own, and tasks of the runtime's
  /// threads.
  KernelAccesses(mlir::FunctionOpInterface kernel, mlir::SymbolTableCollection &symbols);

  /// In program order. `memory` is an argument of the kernel, or one of `buffers`.
  llvm::ArrayRef<MemoryAccess> of(mlir::Value memory) const;
  /// The argument or buffer that a value is, or is a part of; null for what is no memory.
  mlir::Value memoryBehind(mlir::Value value) const { return memoryOf.lookup(value); }
  /// What the kernel allocates.
  llvm::ArrayRef<mlir::Value> buffers() const { return allocated; }
  /// Ops that get memory and do not say what they do with it.
  llvm::ArrayRef<mlir::Operation *> unknown() const { return opaque; }

private:
  /// Memory of which parts of a function's arguments are, while the function is visited: fields of
  /// a struct whose address is the first argument.
  using Fields = llvm::SmallDenseMap<int64_t, mlir::Value>;

  void visitFunction(mlir::FunctionOpInterface function, const Fields &fields);
  void visit(mlir::Operation *op, const Fields &fields);
  bool visitMove(mlir::Operation *op, const Fields &fields);
  void visitCall(mlir::Operation *op);
  void enter(mlir::Operation *callee, mlir::ValueRange arguments, const Fields &fields);
  void access(mlir::Operation *op, mlir::Value memory, bool reads, bool writes);
  unsigned readForOperands(mlir::Operation *op);
  unsigned setNumber(std::vector<unsigned> members);
  unsigned unite(unsigned a, unsigned b);
  void alias(mlir::Value value, mlir::Value memory);

  mlir::SymbolTableCollection &symbols;
  /// Of which memory a value is a view.
  llvm::DenseMap<mlir::Value, mlir::Value> memoryOf;
  /// Pointers that were put into structs on the stack.
  llvm::DenseMap<mlir::Value, Fields> packed;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<MemoryAccess>> accesses;
  llvm::SmallVector<mlir::Value> allocated;
  llvm::SmallVector<mlir::Operation *> opaque;
  mlir::Operation *launch = nullptr; // that is entered
  /// Memories that a value was computed from, as the number of a set; sets are kept once.
  llvm::DenseMap<mlir::Value, unsigned> readFrom;
  llvm::DenseMap<mlir::Value, unsigned> memoryNumbers;
  std::vector<std::vector<unsigned>> sets{{}};
  std::map<std::vector<unsigned>, unsigned> setNumbers{{{}, 0}};
  llvm::DenseMap<std::pair<unsigned, unsigned>, unsigned> unions;
};

} // namespace shardc

#endif // SHARDC_PASSES_VERIFY_KERNELACCESSES_H
