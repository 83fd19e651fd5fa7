// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One node of a program as a call of an ATen operator: its arguments by name, those left out taken
// from the schema, with tensors and sizes as values. Builders of ops (Builders.h) work on it.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_CALL_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_CALL_H

#include "importers/torch_export/import/Symbols.h"
#include "importers/torch_export/program/Program.h"
#include "importers/torch_export/schema/Schema.h"

#include "dialects/aten/Schema.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"

namespace shardc::torch_export {

/// Whether the ops of the aten dialect have tensors of this element type.
bool isSupported(ElementType type);

/// The type of a tensor, dynamic where its metadata have an expression; that of pairs where it is
/// complex.
mlir::RankedTensorType convertType(mlir::MLIRContext *context, const TensorMeta &meta);

class Groups;

/// Finds values of the program by name.
class ValueSource {
public:
  virtual ~ValueSource() = default;
  /// Null after a diagnostic.
  virtual mlir::Value tensor(llvm::StringRef name, mlir::Location loc) = 0;
  virtual mlir::FailureOr<mlir::OpFoldResult> size(const SymIntArg &value, mlir::Location loc) = 0;
  /// The tensor of one element from which the number is read when the program runs, or null.
  virtual mlir::Value item(const SymIntArg &value) = 0;
  /// Whether a node of the graph reads the tensor, or the graph returns it.
  virtual bool isUsed(llvm::StringRef name) = 0;
  /// What PyTorch recorded for a tensor; null if there is none of this name.
  virtual const TensorMeta *recorded(llvm::StringRef name) = 0;
  /// A tensor of random numbers (see `aten.random`).
  virtual mlir::FailureOr<mlir::Value> draw(mlir::Location loc, llvm::StringRef distribution,
                                            mlir::Type elementType,
                                            llvm::ArrayRef<mlir::OpFoldResult> sizes) = 0;
};

class Call {
public:
  Call(mlir::OpBuilder &builder, mlir::Location loc, const Node &node, const Schema &schema,
       llvm::SmallVector<const TensorMeta *> results, llvm::SmallVector<llvm::StringRef> names,
       ValueSource &values, Symbols &symbols, const Groups *groups = nullptr)
      : builder(builder), loc(loc), node(node), schema(schema), results(std::move(results)),
        groups(groups), names(std::move(names)), values(values), symbols(symbols) {}

  mlir::OpBuilder &builder;
  mlir::Location loc;
  const Node &node;
  const Schema &schema;
  llvm::SmallVector<const TensorMeta *> results; // of the node's tensors, lists flattened
  const Groups *groups;                          // of collectives; may be null

  /// Whether the ranks that `dim` is given count the last dim of pairs, which stand for complex
  /// numbers (Complex.h). Set where an operand is complex.
  bool countsPairs = false;

  /// An error at the node, which names it.
  mlir::InFlightDiagnostic error();

  /// The argument as written, or its default; null if the schema has none of this name.
  const Argument *find(llvm::StringRef name);
  bool isNone(llvm::StringRef name);

  // Each fails with a diagnostic if the argument is there and of another form.

  /// Null if it is None.
  mlir::FailureOr<mlir::Value> tensor(llvm::StringRef name);
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> tensors(llvm::StringRef name);
  /// Nothing if it is None.
  mlir::FailureOr<std::optional<int64_t>> integer(llvm::StringRef name);
  mlir::FailureOr<std::optional<double>> real(llvm::StringRef name);
  mlir::FailureOr<bool> boolean(llvm::StringRef name);
  /// Empty if it is None.
  mlir::FailureOr<llvm::SmallVector<bool>> booleans(llvm::StringRef name);
  mlir::FailureOr<std::optional<llvm::SmallVector<int64_t>>> integers(llvm::StringRef name);
  /// Numbers of any form; none if it is None.
  mlir::FailureOr<llvm::SmallVector<double>> reals(llvm::StringRef name);
  /// Null if it is None.
  mlir::FailureOr<mlir::Type> elementType(llvm::StringRef name);
  /// An int or SymInt; null if it is None.
  mlir::FailureOr<mlir::OpFoldResult> size(llvm::StringRef name);
  mlir::FailureOr<llvm::SmallVector<mlir::OpFoldResult>> sizes(llvm::StringRef name);
  /// The tensor of one element from which the argument is read (`x[t]`, where t has no dims); null
  /// where the argument is known otherwise.
  mlir::Value item(llvm::StringRef name);

  /// What the call writes over one of its tensors besides its results, where the schema says so or
  /// not (batch norm); nothing where the argument is None.
  void write(llvm::StringRef argument, mlir::Value value) { writes.push_back({argument, value}); }
  llvm::ArrayRef<std::pair<llvm::StringRef, mlir::Value>> getWrites() const { return writes; }

  /// Whether the graph reads a result: statistics for a backward are made only for one.
  bool isUsed(unsigned result) { return result < names.size() && values.isUsed(names[result]); }
  /// What PyTorch recorded for the tensor that an argument names, strides included; or null.
  const TensorMeta *recorded(llvm::StringRef name);
  /// Likewise of each tensor of a list; null for None.
  llvm::SmallVector<const TensorMeta *> recordedList(llvm::StringRef name);
  /// Whether a tensor among the arguments is complex.
  bool hasComplexOperands();
  /// The shape that PyTorch recorded for a result, and its element type; those of pairs where it is
  /// complex.
  mlir::FailureOr<llvm::SmallVector<mlir::OpFoldResult>> resultSizes(unsigned result = 0);
  mlir::Type resultElementType(unsigned result = 0);

  /// A tensor of random numbers (see `aten.random`).
  mlir::FailureOr<mlir::Value> draw(llvm::StringRef distribution, mlir::Type elementType,
                                    llvm::ArrayRef<mlir::OpFoldResult> sizes) {
    return values.draw(loc, distribution, elementType, sizes);
  }

  /// Counts a dim from the front; fails if it is outside of a tensor of this rank.
  mlir::FailureOr<int64_t> dim(int64_t value, int64_t rank);
  /// The dim called `name`, of a tensor of this rank.
  mlir::FailureOr<int64_t> dimArgument(llvm::StringRef name, int64_t rank);

  /// `value` as a 0-dim tensor.
  mlir::FailureOr<mlir::Value> scalar(const Argument &value, mlir::Type elementType);

  mlir::FailureOr<mlir::Operation *> build(llvm::StringRef op,
                                           llvm::ArrayRef<aten::NamedOperand> operands,
                                           llvm::ArrayRef<mlir::NamedAttribute> attributes = {});
  /// Likewise an op with one result.
  mlir::FailureOr<mlir::Value> buildOne(llvm::StringRef op,
                                        llvm::ArrayRef<aten::NamedOperand> operands,
                                        llvm::ArrayRef<mlir::NamedAttribute> attributes = {});
  mlir::NamedAttribute integerAttr(llvm::StringRef name, int64_t value) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
  }
  mlir::NamedAttribute integersAttr(llvm::StringRef name, llvm::ArrayRef<int64_t> values) {
    return builder.getNamedAttr(name, builder.getDenseI64ArrayAttr(values));
  }

private:
  bool isComputable(mlir::Value tensor);
  mlir::FailureOr<mlir::Value> sizeAsTensor(const SymIntArg &size, mlir::Type elementType);
  template <typename T> mlir::FailureOr<T> wrongForm(llvm::StringRef name);

  llvm::SmallVector<llvm::StringRef> names; // of the results
  ValueSource &values;
  Symbols &symbols;
  llvm::SmallVector<std::pair<llvm::StringRef, std::unique_ptr<Argument>>, 4> defaults;
  llvm::SmallVector<std::pair<llvm::StringRef, mlir::Value>, 2> writes;
};

/// The default of an argument as an argument; None for one that must be given.
Argument defaultArgument(const SchemaArgument &argument);

/// A number of any form.
std::optional<double> asReal(const Argument &argument);

/// Compares what was inferred with what PyTorch recorded, and keeps what is more precise.
mlir::LogicalResult refineTypes(Call &call, llvm::ArrayRef<mlir::Value> results);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_CALL_H
