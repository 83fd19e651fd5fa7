// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_IMPORTERS_PLAN_TRAININGREADER_H
#define SHARDC_IMPORTERS_PLAN_TRAININGREADER_H

#include "importers/plan/Training.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"

namespace llvm::yaml {
class Node;
}

namespace shardc::plan {

/// Reads the value of `train:` over what `training` has already. Each mistake is given to `report`
/// with the node that it is in.
void readTraining(llvm::yaml::Node *section,
                  llvm::function_ref<void(llvm::yaml::Node *, const llvm::Twine &)> report,
                  Training &training);

} // namespace shardc::plan

#endif // SHARDC_IMPORTERS_PLAN_TRAININGREADER_H
