// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives that deliver a tensor in the memory that they read it from.

#ifndef SHARDC_DIALECTS_DIST_INPLACE_H
#define SHARDC_DIALECTS_DIST_INPLACE_H

#include "dialects/dist/Dist.h"

namespace shardc::dist {

/// Whether a collective needs no memory for the result of tensor `index`: an all-reduce or a
/// broadcast of what an op of this function computes and nothing else reads. Reshapes and copies
/// between the two take no memory either, as long as each has one user. What plans memory and what
/// estimates it both ask here.
bool worksInPlace(CollectiveOpInterface op, unsigned index);

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_INPLACE_H
