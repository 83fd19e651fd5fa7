// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conditions on sizes that an export relies on, in the Python form that the file keeps them in.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_GUARDS_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_GUARDS_H

#include "importers/torch_export/program/SymExpr.h"

#include <functional>
#include <optional>

namespace shardc::torch_export {

/// `left relation right`, a relation being one of == != <= < >= >.
struct Guard {
  SymExpr left, right;
  std::string_view relation;
  /// Holds whatever the symbols are: both sides are the same expression, or constants that fit.
  bool isTrivial() const;
};

/// The size of an input, by its name and dim; nothing where there is no such input or dim.
using InputSize = std::function<std::optional<SymExpr>(std::string_view input, int64_t dim)>;

/// Parses e.g. `(L['x'].size()[0] % 4) == 0`: integers, sizes of inputs, + - * // % and parentheses
/// on both sides of one relation. An input in a structure, `L['pair'][0]`, has the name `pair_0`.
/// Views into the text stay in the result. Returns nothing and sets `error` for text of another
/// form.
std::optional<Guard> parseGuard(std::string_view text, const InputSize &sizeOf, std::string &error);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_GUARDS_H
