// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the nodes of an exported program come from in the user's model, for reports.

#ifndef SHARDC_PASSES_COLLECTIVES_EXPORTED_ORIGINS_H
#define SHARDC_PASSES_COLLECTIVES_EXPORTED_ORIGINS_H

#include "importers/torch_export/program/Program.h"
#include "passes/collectives/core/BucketExplanation.h"

namespace shardc::collectives {

/// By node. A node without a module of its own (gathers are inserted after tracing) takes that of
/// the parameter it reads; the parameter is found through operators with one tensor operand, the
/// output likewise.
std::vector<Origin> originsOf(const torch_export::ExportedProgram &program);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_EXPORTED_ORIGINS_H
