// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Says of each bucket what is in it, why it was closed and what it brought, and of each collective
// in no bucket why it was left alone.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_BUCKETEXPLANATION_H
#define SHARDC_PASSES_COLLECTIVES_CORE_BUCKETEXPLANATION_H

#include "passes/collectives/core/Optimize.h"

#include <iosfwd>

namespace shardc::collectives {

/// Where a node comes from in the user's model. Each may be empty.
struct Origin {
  /// "model.layers.0.mlp"
  std::string module;
  /// The parameter or input that a gather reads, or the output that a reduction makes.
  std::string tensor;
  /// "model.py:120"
  std::string location;
};

/// By node; nothing for nodes beyond the end.
using Origins = std::span<const Origin>;

/// Two members of a JSON object: "buckets", with id, kind, group, group_size, bytes, cap_bytes
/// (null for `auto`), closed, exposed_before_us, exposed_after_us, duration_us, slack_us (how much
/// longer it could take before something waits for it; null where nothing does) and members; and
/// "alone", with name, kind, group, bytes, reason and these times. A member, and a node left alone,
/// has module, tensor and location where they are known.
void writeExplanation(const Graph &graph, const OptimizeResult &result, Origins origins,
                      std::ostream &out);

/// The same for people: the first buckets, the collectives left alone by reason, and those that are
/// hidden with little slack.
void printExplanation(const Graph &graph, const OptimizeResult &result, Origins origins,
                      std::ostream &out);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_BUCKETEXPLANATION_H
