// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives that deliver a tensor in the memory that they read it from.

#ifndef SHARDC_DIALECTS_DIST_INPLACE_H
#define SHARDC_DIALECTS_DIST_INPLACE_H

#include "dialects/dist/Dist.h"

namespace shardc::dist {

/// Whether a collective needs no memory for its results: an all-reduce or a broadcast of what ops
/// of this function compute and nothing else reads. Reshapes and copies between the two take no
/// memory either, as long as each has one user. All tensors of a bucket, or none: it is packed as a
/// whole. What plans memory and what estimates it both ask here.
bool worksInPlace(CollectiveOpInterface op);

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_INPLACE_H
