// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What single stages promise beyond which ops and types they have. Each adds what it finds.

#ifndef SHARDC_PASSES_VERIFY_STAGECHECKS_H
#define SHARDC_PASSES_VERIFY_STAGECHECKS_H

#include "passes/verify/Stage.h"
#include "passes/verify/Violations.h"

#include "dialects/dist/Dist.h"
#include "dialects/sharding/ShardingRule.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include <unordered_map>

namespace shardc {

/// placed: layouts against sharding rules. Identical layers of a model are looked at once.
class RuleChecks {
public:
  explicit RuleChecks(Violations &violations) : violations(violations) {}

  void check(mlir::Operation *op);
  int64_t getNumDistinct() const { return numDistinct; }

private:
  struct Known {
    ShardingRule rule;
    llvm::SmallVector<mlir::Type> types;
    std::vector<std::string> errors;
  };
  const std::vector<std::string> &errorsOf(mlir::Operation *op, ShardingRule rule);

  Violations &violations;
  std::unordered_multimap<size_t, Known> known;
  int64_t numDistinct = 0;
};

/// local, scheduled: arguments and results have extents that some rank has.
void checkLocalSignature(mlir::FunctionOpInterface function, Violations &violations);

/// imported to scheduled: the new value of a parameter or buffer has the type and the layout of the
/// argument, so that the next run can start from it.
void checkStates(mlir::FunctionOpInterface function, Violations &violations);

/// local: collectives are synchronous; scheduled: asynchronous, in the function's own block, and
/// each future is waited for once or returned.
void checkCollective(dist::CollectiveOpInterface op, Stage stage, Violations &violations);

/// scheduled: how often a future is waited for, wherever it comes from.
void checkFuture(mlir::Value future, Violations &violations);

/// specialized: `dist.specializations` names every function of the module, and types are static
/// where no symbol decides.
void checkSpecialized(mlir::ModuleOp module, Violations &violations);

/// planned: the whole module.
void checkPlanned(mlir::ModuleOp module, Violations &violations, StageStatistics &statistics);

/// lowered: external functions.
void checkLoweredFunction(mlir::Operation *function, Violations &violations);

} // namespace shardc

#endif // SHARDC_PASSES_VERIFY_STAGECHECKS_H
