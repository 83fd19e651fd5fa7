// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes that say what the optimiser of collectives has decided, and why. They stay on ops
// until the program is lowered, for reports.

#ifndef SHARDC_PASSES_COLLECTIVES_DECISIONATTRIBUTES_H
#define SHARDC_PASSES_COLLECTIVES_DECISIONATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace shardc {

/// On a collective made of several: {members, bytes, cap_bytes (absent where the cost model alone
/// decides), closed, exposed_before_us, exposed_after_us, slack_us}. slack_us is how much longer it
/// could take before something waits for it, absent where nothing does. A member is {bytes,
/// location, module, tensor, backward} without what is not known; tensor is an argument of the
/// function, backward is true in the backward of the module.
inline constexpr llvm::StringLiteral kBucketAttr = "dist.bucket";
/// On one that was left alone: {reason, exposed_before_us, exposed_after_us, slack_us}.
inline constexpr llvm::StringLiteral kAloneAttr = "dist.alone";
/// On a function: {step_us, exposed_us, peak_bytes} of the program as it is now, and the same of
/// the program before as {step_before_us, ...}; {step_least_us, step_most_us} over the scenarios of
/// core/Replay.h.
inline constexpr llvm::StringLiteral kPredictedAttr = "dist.predicted";

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_DECISIONATTRIBUTES_H
