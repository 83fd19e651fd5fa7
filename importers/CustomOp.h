// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that users register (importers/plan/CustomOps.h reads them).
#ifndef SHARDC_IMPORTERS_CUSTOMOP_H
#define SHARDC_IMPORTERS_CUSTOMOP_H

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardc {

/// A function and its rule.
struct CustomFunction {
  std::string rule, symbol;
};

/// An argument of an operator that is no tensor.
using CustomArgument =
    std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;

struct CustomOp {
  std::string target; ///< "geometry.knn.default", as exported programs name it
  std::string rule, symbol;
  std::string library; ///< the path of the file that has its functions
  /// For each operand that is a float, or one for all; none: it has no derivative.
  std::vector<CustomFunction> backward;
  /// What arguments are that a program does not say: PyTorch leaves out those that have their
  /// defaults.
  std::vector<std::pair<std::string, CustomArgument>> defaults;
  std::string origin; ///< where it was written, for messages
};

} // namespace shardc

#endif // SHARDC_IMPORTERS_CUSTOMOP_H
