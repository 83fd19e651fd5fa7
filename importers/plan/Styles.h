// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a style does to one parameter.
#ifndef SHARDC_IMPORTERS_PLAN_STYLES_H
#define SHARDC_IMPORTERS_PLAN_STYLES_H

#include "importers/plan/Resolve.h"

namespace shardc::plan {

/// Whether the style shards weights, so that a module without one is a mistake.
bool shards(Style style);

/// The dim of a module's parameter that the style shards, from what ops make of its dims; nothing
/// where the parameter is whole on every rank.
std::optional<int64_t> shardedDim(Style style, const DimRoles &roles, size_t rank);

/// The message for a module of which the style shards no parameter.
std::string nothingToShard(Style style, const ModuleBoundary &module, const ModelNames &model,
                           const std::string &axis);

/// What the style makes of a parameter that the plan names itself, without its module: by position,
/// as in transformers, because nothing says what the dims of such a tensor are. Columns are the
/// last dim but one, rows the last one, and experts the first. A matrix whose dims have roles is
/// placed by these. Nothing where the style says nothing.
std::optional<Placement> placementOfBare(Style style, const NamedTensor &parameter);

} // namespace shardc::plan

#endif // SHARDC_IMPORTERS_PLAN_STYLES_H
