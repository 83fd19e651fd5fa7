// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What each module of the model costs, its forward and its backward apart.
#ifndef SHARDC_PASSES_REPORT_MODULEREPORT_H
#define SHARDC_PASSES_REPORT_MODULEREPORT_H

#include "passes/collectives/analysis/ProgramGraph.h"

#include "llvm/ADT/MapVector.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace shardc {

/// Times in microseconds, on the rank that has most to do.
struct ModuleRecord {
  std::string module; ///< path, e.g. `model.layers.0.mlp`; empty for ops outside of all modules
  bool backward = false;
  unsigned collectives = 0; ///< that it takes part in
  /// Of its collectives, as in CollectiveRecord; of a bucket the share of the module's tensors.
  double bytesPerRank = 0, collectiveUs = 0, exposedUs = 0;
  double computeUs = 0; ///< of its kernels
  /// Of what its forward computes and a backward reads; 0 for a backward.
  double keptBytes = 0;
};

/// Modules in order of the first that is asked for, the forward of each before its backward.
class ModuleTable {
public:
  /// Added where there is none.
  ModuleRecord &of(llvm::StringRef module, bool backward);
  std::vector<ModuleRecord> take();

private:
  llvm::MapVector<llvm::StringRef, std::array<std::optional<ModuleRecord>, 2>> records;
};

/// The kernels and kept values of a function. Collectives are not counted, but keep values as well.
ModuleTable tabulateModules(const ProgramGraph &program);

} // namespace shardc

#endif // SHARDC_PASSES_REPORT_MODULEREPORT_H
