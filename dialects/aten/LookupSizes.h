// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a lookup in one rank's shard of a table says of the whole table.
#ifndef SHARDC_DIALECTS_ATEN_LOOKUPSIZES_H
#define SHARDC_DIALECTS_ATEN_LOOKUPSIZES_H

#include "llvm/ADT/StringRef.h"

namespace shardc::aten {

/// Discardable attribute of aten.embedding, gather, index_select and index: i64 values, one for
/// each looked-up dim (as `indices_at` lists them), the size that it has in the whole table.
/// Dynamic where that is not known or the dim is whole. Messages about positions name it: users
/// know no shards.
inline constexpr llvm::StringLiteral kLookupSizesAttr = "aten.lookup_sizes";

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_LOOKUPSIZES_H
