// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which scores of neighborhood attention are those of a neighbor.
#ifndef SHARDC_DIALECTS_ATEN_NEIGHBORHOODSCORES_H
#define SHARDC_DIALECTS_ATEN_NEIGHBORHOODSCORES_H

#include "dialects/aten/Expr.h"
#include "dialects/aten/NeighborhoodWindow.h"

namespace shardc::aten {

/// Bools that broadcast to the scores that `aten.neighborhood_qk` makes, of known sizes of the
/// spatial dims where queries may lack keys: whether a query has this neighbor. Null where all do.
Expr neighborsExist(Emitter &emit, const Neighborhoods &neighborhoods,
                    llvm::ArrayRef<int64_t> sizes);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_NEIGHBORHOODSCORES_H
