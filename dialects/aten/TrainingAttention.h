// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention that drops weights is composed of plain ops: products, a softmax and a dropout. Marked
// `aten.alias` ops hold what it was composed of, so that `aten-to-inference` can put one op of
// attention in its place.

#ifndef SHARDC_DIALECTS_ATEN_TRAININGATTENTION_H
#define SHARDC_DIALECTS_ATEN_TRAININGATTENTION_H

#include "llvm/ADT/StringRef.h"

namespace shardc::aten {

/// Of the `aten.alias` ops below: a distinct attribute, the same for all of one attention.
inline constexpr llvm::StringLiteral kTrainingAttentionAttr = "aten.training_attention";

/// What an `aten.alias` of an attention is: one of the names below.
inline constexpr llvm::StringLiteral kAttentionPartAttr = "aten.attention_part";

inline constexpr llvm::StringLiteral kAttentionQuery = "query";
inline constexpr llvm::StringLiteral kAttentionKey = "key";
inline constexpr llvm::StringLiteral kAttentionValue = "value";
inline constexpr llvm::StringLiteral kAttentionMask = "mask";
inline constexpr llvm::StringLiteral kAttentionResult = "result";

/// Of the mask: what it is found to say, instead of its elements. One of the two below.
inline constexpr llvm::StringLiteral kAttentionMaskFormAttr = "aten.attention_mask_form";
inline constexpr llvm::StringLiteral kMaskShowsAll = "all";
inline constexpr llvm::StringLiteral kMaskIsCausal = "causal";

/// Of the result: the options of the op, a dictionary with some of `attn_mask` (a unit: there is a
/// mask), `is_causal`, `enable_gqa` (units) and `scale` (f64).
inline constexpr llvm::StringLiteral kAttentionOptionsAttr = "aten.attention_options";

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_TRAININGATTENTION_H
