// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_PASSES_COLLECTIVES_PASSES_H
#define SHARDC_PASSES_COLLECTIVES_PASSES_H

#include "dialects/interfaces/PassStatistic.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/Dist.h"
#include "passes/collectives/core/FormBuckets.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace shardc {

#define GEN_PASS_DECL
#include "passes/collectives/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/collectives/Passes.h.inc"

/// Options of --shardc-optimize-collectives; see dist-schedule-collectives.
struct OptimizeCollectivesOptions : mlir::PassPipelineOptions<OptimizeCollectivesOptions> {
  Option<std::string> topology{
      *this, "topology",
      llvm::cl::desc("Cost model: a built-in one (h100-8, h100-64, h200-8, cpu-local, sim-v1) or "
                     "the file of a target description"),
      llvm::cl::init("h100-64")};
  Option<uint64_t> memoryLimit{
      *this, "memory-limit",
      llvm::cl::desc("Bytes that one rank may hold at once; 0: see dist-schedule-collectives")};
  ListOption<std::string> sizes{
      *this, "sizes",
      llvm::cl::desc("What symbols are taken to be, e.g. sizes=batch=8 (others: 128, or the "
                     "nearest in their range)")};
  Option<std::string> caps{*this, "caps", llvm::cl::desc("Caps of buckets in MiB, or auto"),
                           llvm::cl::init("auto")};
  Option<bool> simplify{*this, "simplify", llvm::cl::desc("Simplify before"), llvm::cl::init(true)};
  Option<bool> bucket{*this, "bucket", llvm::cl::desc("Merge collectives"), llvm::cl::init(true)};
  Option<bool> reorder{*this, "reorder", llvm::cl::desc("Move ops"), llvm::cl::init(true)};
  Option<bool> mixedDtype{*this, "mixed-dtype",
                          llvm::cl::desc("Gathers of different element types may share a bucket")};
  Option<bool> bestEffort{
      *this, "best-effort",
      llvm::cl::desc("Keep the program's order where no order meets the memory limit")};
  Option<bool> scaleHalf{*this, "scale-half",
                         llvm::cl::desc("Averages of f16 become sums between two scalings")};
  Option<bool> flat{*this, "flat", llvm::cl::desc("Buckets are neither packed nor unpacked")};
};

/// local -> scheduled.
void buildOptimizeCollectivesPipeline(mlir::OpPassManager &manager,
                                      const OptimizeCollectivesOptions &options);
void registerOptimizeCollectivesPipeline();

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_PASSES_H
