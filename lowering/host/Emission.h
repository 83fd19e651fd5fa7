// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entries to LLVM's dialect: what the files of `exec-emit-program` share.

#ifndef SHARDC_LOWERING_HOST_EMISSION_H
#define SHARDC_LOWERING_HOST_EMISSION_H

#include "dialects/exec/Exec.h"
#include "lowering/host/GlobalPool.h"
#include "lowering/host/RuntimeAbi.h"
#include "lowering/target/Backend.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace shardc::host {

/// Name of the global that the tables of the artifact define (lowering/artifact/Tables.h) for all
/// collectives.
constexpr llvm::StringLiteral kCollectivesSymbol = "shardc_collectives";

/// Tables of the program, found while its entries are converted; kept as attributes of the module:
///   exec.groups       array of group attributes
///   exec.collectives  array of dictionaries
///   exec.ops          array of [name, location]
///   exec.libraries    array of [library, symbol, op], for functions that are not made here
///   exec.uses_blas    if there is a matrix product
class ProgramTables {
public:
  explicit ProgramTables(mlir::ModuleOp module);

  /// Number of a group or collective in its table.
  unsigned group(mlir::Attribute canonical);
  unsigned collective(mlir::Operation *op) const { return collectiveIndex.lookup(op); }
  /// Number of a launch, product or collective.
  std::optional<unsigned> op(mlir::Operation *op) const;
  /// Position of a symbol in shardrt_frame.symbols.
  std::optional<unsigned> symbol(llvm::StringRef name) const;
  void writeTo(mlir::ModuleOp module);

private:
  /// `ordinal`: its place among the collectives of its entry.
  void addCollective(exec::CollectiveCallInterface op, unsigned ordinal);

  llvm::MapVector<mlir::Attribute, unsigned> groups;
  llvm::SmallVector<mlir::Attribute> collectives;
  llvm::DenseMap<mlir::Operation *, unsigned> collectiveIndex;
  llvm::DenseMap<mlir::Operation *, unsigned> opIndex;
  llvm::SmallVector<mlir::Attribute> ops;
  llvm::MapVector<mlir::StringRef, unsigned> symbols;
  bool usesBlas = false;
  /// [library, symbol, op] of functions that are not made here.
  llvm::SetVector<mlir::Attribute> libraries;
};

/// What a function of the program makes once and uses in many places: an entry is thousands of
/// calls, and each that made these anew would cost the compiler more than it costs the run.
class FunctionParts {
public:
  /// The field of the frame at `bytes`, which the runtime leaves as it is while the function runs.
  mlir::Value field(mlir::OpBuilder &builder, mlir::Operation *op, mlir::Type type, size_t bytes);
  /// The service whose address is at `bytes` of shardrt_services.
  mlir::Value service(mlir::OpBuilder &builder, mlir::Operation *op, size_t bytes);
  /// Memory on the stack for what a service reads during its call only.
  mlir::Value argument(mlir::OpBuilder &builder, mlir::Operation *op, size_t bytes);
  /// The block that returns its argument, the status of a service that failed.
  mlir::Block *failure(mlir::OpBuilder &builder, mlir::Operation *op);

private:
  struct Parts {
    llvm::DenseMap<size_t, mlir::Value> fields, services, arguments;
    mlir::Value lastLoad;
    mlir::Block *failure = nullptr;
  };
  /// At the beginning of the function, behind the loads that are there.
  mlir::Value load(mlir::OpBuilder &builder, mlir::LLVM::LLVMFuncOp function, mlir::Type type,
                   mlir::Value base, size_t bytes);
  llvm::DenseMap<mlir::Operation *, Parts> parts;
};

/// The frame of the function around an op, whose fields are loaded where the function begins.
class FunctionFrame : public abi::Frame {
public:
  FunctionFrame(FunctionParts &parts, mlir::Operation *op);
  mlir::Value field(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type,
                    size_t bytes) const override;
  mlir::Value service(mlir::OpBuilder &builder, mlir::Location loc, size_t bytes) const override;

private:
  FunctionParts &parts;
  mlir::Operation *op;
};

struct Emission {
  const mlir::LLVMTypeConverter &converter;
  ProgramTables &tables;
  GlobalPool &pool;
  FunctionParts &parts;
  /// Bytes; of constants.
  int64_t alignment;
  /// How the target launches kernels; null where no entry launches one.
  target::LaunchLowering *launches;

  FunctionFrame frame(mlir::Operation *op) const { return {parts, op}; }
  /// Tells the runtime that `op` begins, if it has a name in the tables.
  void mark(mlir::OpBuilder &builder, mlir::Operation *op) const;
  /// Returns `status` from the function around `op` if it is not 0; the builder goes on after it.
  void returnIfFailed(mlir::OpBuilder &builder, mlir::Operation *op, mlir::Value status) const;
};

/// The frame of the function around `op`.
mlir::Value frameOf(mlir::Operation *op);
/// Space on the stack of the function around `op`, allocated once.
mlir::Value stackSlot(mlir::OpBuilder &builder, mlir::Location loc, mlir::Operation *op,
                      int64_t bytes);
mlir::Value constantInt(mlir::OpBuilder &builder, mlir::Location loc, int64_t value,
                        unsigned bits = 64);

void populateHostPatterns(const Emission &emission, mlir::RewritePatternSet &patterns);
void populateCollectivePatterns(const Emission &emission, mlir::RewritePatternSet &patterns);
void populateExtentPatterns(const Emission &emission, mlir::RewritePatternSet &patterns);

} // namespace shardc::host

#endif // SHARDC_LOWERING_HOST_EMISSION_H
