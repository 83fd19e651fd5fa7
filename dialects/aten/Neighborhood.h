// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_ATEN_NEIGHBORHOOD_H
#define SHARDC_DIALECTS_ATEN_NEIGHBORHOOD_H

#include "dialects/aten/Aten.h"
#include "dialects/aten/NeighborhoodWindow.h"

namespace shardc::aten {

/// Numbers that `place` has for each spatial dim, in this order.
enum class NeighborhoodPlace : uint8_t { Size, FirstQuery, FirstKey, NumKeys };
inline constexpr size_t kNeighborhoodPlaces = 4;

/// Dims in front of the spatial ones, and behind them in queries, keys and values.
inline constexpr size_t kNeighborhoodBatch = 1;
inline constexpr size_t kNeighborhoodRow = 2;

} // namespace shardc::aten

#define GET_OP_CLASSES
#include "dialects/aten/Neighborhood.h.inc"

#endif // SHARDC_DIALECTS_ATEN_NEIGHBORHOOD_H
