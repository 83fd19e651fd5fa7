// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_PASSES_LOCALIZE_SCANS_H
#define SHARDC_PASSES_LOCALIZE_SCANS_H

#include "passes/localize/Models.h"

namespace shardc {

/// The result of a flip of a scan of a flip along one sharded dim, which is a scan from the last
/// element back, as derivatives of scans are: no rank's part moves to where it is turned, and one
/// number a row is exchanged as for any scan. Fails silently where `turned` is no such flip.
LocalValues scanFromEnd(Localizer &localizer, mlir::OpBuilder &builder, aten::FlipOp turned);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_SCANS_H
