// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code for single elements of a kernel's values. What a stage computes for its own use exists in
// registers: an element is computed where it is asked for, from elements of the values before.

#ifndef SHARDC_LOWERING_CUDA_KERNELS_ELEMENTS_H
#define SHARDC_LOWERING_CUDA_KERNELS_ELEMENTS_H

#include "lowering/cuda/kernels/KernelKind.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <map>
#include <set>

namespace shardc::cuda {

/// Stands for position 0, where no loop runs.
constexpr int kNoDim = -1;

/// An element of a tensor, by the loop that runs along each of its dims. Numbers of loops are the
/// caller's: an emitter has loops of its own, e.g. those of the op whose result it stores.
struct ElementAccess {
  mlir::Value tensor;
  llvm::SmallVector<int, 4> dims;

  bool operator==(const ElementAccess &other) const {
    return tensor == other.tensor && dims == other.dims;
  }
  bool operator<(const ElementAccess &other) const {
    if (tensor != other.tensor)
      return tensor.getAsOpaquePointer() < other.tensor.getAsOpaquePointer();
    return dims < other.dims;
  }
};

/// The element of an operand that an op with these loops looks at.
ElementAccess accessOf(mlir::linalg::LinalgOp op, mlir::OpOperand &operand,
                       llvm::ArrayRef<int> loops);
/// The loops at which an op computes an element of its result; kNoDim for loops that the result has
/// not.
llvm::SmallVector<int, 4> loopsFor(mlir::OpResult result, llvm::ArrayRef<int> dims);

/// Whether an element of the value is computed where it is read: a constant, or of an op of the
/// stage without reductions.
bool isComputedInPlace(const KernelStage &stage, mlir::Value tensor);

/// Elements of memory that computing an element reads, in the order of reading, without those at
/// computed positions.
void collectReads(const KernelStage &stage, const ElementAccess &access,
                  std::vector<ElementAccess> &reads);
/// The same for what `op` reads at these loops.
void collectReads(const KernelStage &stage, mlir::linalg::LinalgOp op, llvm::ArrayRef<int> loops,
                  std::vector<ElementAccess> &reads);

/// Makes the code. Elements are computed once for each object of this class, so all code that an
/// object makes must be in one block, or in blocks that see the ones before.
class ElementBuilder {
public:
  ElementBuilder(const KernelStage &stage, mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc), stage(stage) {}
  virtual ~ElementBuilder() = default;

  /// An element of any value: computed, or read.
  virtual mlir::Value element(const ElementAccess &access);
  /// What the body of `op` yields at these loops. `inits` are the present elements of its initial
  /// values; where there are none, the ones that the body uses are elements of these values.
  llvm::SmallVector<mlir::Value> compute(mlir::linalg::LinalgOp op, llvm::ArrayRef<int> loops,
                                         mlir::ValueRange inits = {});
  /// Gives an element, e.g. of a reduction that an emitter has in a register.
  void define(const ElementAccess &access, mlir::Value value) { known[access] = value; }
  /// Forgets all elements, and which positions were checked.
  void clear() {
    known.clear();
    checked.clear();
  }

  mlir::OpBuilder &builder;
  mlir::Location loc;

protected:
  /// The current position of a loop of the caller, as an index.
  virtual mlir::Value position(int dim) = 0;
  /// An element in memory. The default loads it from the value's place.
  virtual mlir::Value read(const ElementAccess &access);
  /// What an op at these loops reads at computed positions; zero, and no access, where there is a
  /// `valid` and it does not hold. The default loads an element.
  virtual mlir::Value lookUp(mlir::tensor::ExtractOp extract, mlir::linalg::LinalgOp op,
                             llvm::ArrayRef<int> loops, mlir::ValueRange positions,
                             mlir::Value valid);
  /// Values of these types that `make` makes, where `valid` holds or is null; else zeros.
  llvm::SmallVector<mlir::Value> onlyIf(mlir::Value valid, mlir::TypeRange types,
                                        llvm::function_ref<llvm::SmallVector<mlir::Value>()> make);

  mlir::Value positionOrZero(int dim);
  /// Forgets elements alone: those of another point are asked for in the same block.
  void forgetElements() { known.clear(); }
  const KernelStage &stage;

private:
  mlir::Value checkPositions(mlir::linalg::LinalgOp op, mlir::ValueRange inputs);
  void replaceNested(mlir::Operation *copy, mlir::linalg::LinalgOp op, llvm::ArrayRef<int> loops,
                     mlir::Value valid);

  std::map<ElementAccess, mlir::Value> known;
  /// Whether an index is in the range of a check.
  llvm::DenseMap<std::pair<mlir::Operation *, mlir::Value>, mlir::Value> checked;
};

/// Stores an element in all places of a stored value.
void storeElement(ElementBuilder &elements, const FusedKernel &kernel, mlir::OpResult result,
                  mlir::ValueRange positions, mlir::Value element);

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_KERNELS_ELEMENTS_H
