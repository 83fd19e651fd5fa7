// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A whole sort along a sharded dim, where each element is sent once.
#ifndef SHARDC_PASSES_LOCALIZE_SAMPLESORT_H
#define SHARDC_PASSES_LOCALIZE_SAMPLESORT_H

#include "dialects/aten/Sorting.h"
#include "passes/localize/Models.h"

namespace shardc {

/// The local form of `op`, whose dim is sharded in one piece a rank and is the only one of a size
/// other than 1:
///
///  1. each rank sorts what it has;
///  2. the ranks find which value is at the first place of each shard of the result. Elements have
///  a
///     key, an integer that is ordered as they are. It is found digit by digit, from the counts of
///     keys below each value of the digit, which an all-reduce adds up;
///  3. each rank cuts its sorted run at these values. Among equal elements those of earlier ranks
///     come first, which the counts of them on all ranks say, so that the result's shards have the
///     sizes that its layout says, and equal elements keep their order;
///  4. an all-to-all, whose counts are those of this run, takes the pieces to where they belong,
///     and each rank merges what it got.
LocalValues sampleSort(Localizer &localizer, mlir::OpBuilder &builder, aten::SortOp op,
                       mlir::Value local);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_SAMPLESORT_H
