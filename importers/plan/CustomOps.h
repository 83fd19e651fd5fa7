// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that users register, in the section `ops:` of a plan or of a file of its own:
//
//   ops:
//     geometry::knn:                  # as PyTorch names it; an overload may follow:
//     geometry::knn.k
//       rule: "n d, m d -> n k"       # dialects/sharding/RuleText.h
//       symbol: geometry_knn          # runtime/include/shardrt_op.h
//       library: libgeometry.so       # beside this file; or an object file or an archive
//       defaults: {k: 3}              # of arguments that PyTorch leaves out where they have these
//       values backward: {rule: "...", symbol: geometry_knn_backward}   # or a list of them
#ifndef SHARDC_IMPORTERS_PLAN_CUSTOMOPS_H
#define SHARDC_IMPORTERS_PLAN_CUSTOMOPS_H

#include "importers/CustomOp.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"

#include <string>
#include <vector>

namespace llvm::yaml {
class Node;
}

namespace shardc::plan {

/// Reads the value of `ops:`, which is in `file`. Each mistake is given to `report` with the node
/// that it is in.
void readCustomOps(llvm::yaml::Node *section, llvm::StringRef file,
                   llvm::function_ref<void(llvm::yaml::Node *, const llvm::Twine &)> report,
                   llvm::function_ref<std::string(llvm::yaml::Node *)> placeOf,
                   std::vector<CustomOp> &ops);

/// The operators that a file registers. Of a plan, mistakes elsewhere in it are left to whoever
/// reads the plan; any other file has to register some.
std::vector<CustomOp> loadCustomOps(llvm::StringRef path, bool isPlan,
                                    std::vector<std::string> &errors);

} // namespace shardc::plan

#endif // SHARDC_IMPORTERS_PLAN_CUSTOMOPS_H
