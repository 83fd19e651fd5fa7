// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Channels in groups (group norm, grouped convolutions): the dim is (groups, channels of a group),
// and mesh axes share out whole groups, in any numbers, or a part of every group.
#ifndef SHARDC_PASSES_LOCALIZE_CHANNELGROUPS_H
#define SHARDC_PASSES_LOCALIZE_CHANNELGROUPS_H

#include "passes/localize/Localizer.h"

namespace shardc {

/// What one rank holds of the channels: `groups` times `channels` of each.
struct ChannelGroups {
  mlir::OpFoldResult groups, channels;
  llvm::SmallVector<unsigned> sharedBy; ///< axes that share out the channels of a group
};

/// `size` channels in `numGroups` groups, split by `split`. Fails, with a diagnostic that says what
/// to do, where an axis cuts between groups and inside them at once, and where a symbolic size is
/// split.
mlir::FailureOr<ChannelGroups> localGroups(Localizer &localizer, mlir::OpBuilder &builder,
                                           const GlobalSize &size, const DimSplit &split,
                                           int64_t numGroups);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_CHANNELGROUPS_H
