// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a plan says about the values that parameters begin with: `train: init:` (docs/training.md).
#ifndef SHARDC_IMPORTERS_PLAN_INITIALIZATION_H
#define SHARDC_IMPORTERS_PLAN_INITIALIZATION_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardc::plan {

/// What the elements of one tensor begin with.
struct InitialValues {
  enum class Kind : uint8_t {
    Keep,            ///< they stay as they were loaded
    Constant,        ///< `mean`
    Uniform,         ///< from `low` to `high`
    Normal,          ///< `mean` and `deviation`
    TruncatedNormal, ///< the same, between `low` and `high`
  };
  Kind kind = Kind::Constant;
  double mean = 0, deviation = 0, low = 0, high = 0;

  bool operator==(const InitialValues &) const = default;
  bool isRandom() const { return kind != Kind::Keep && kind != Kind::Constant; }
};

/// A function of torch.nn.init and its arguments, for the parameters and buffers that match; those
/// that are not given have PyTorch's defaults. The first that matches a parameter counts.
struct Initializer {
  std::vector<std::string> parameters; ///< patterns
  std::string distribution;            ///< without the underscore at its end: "kaiming_uniform"
  std::optional<double> mean, std, a, b, gain, value;
  std::string mode, nonlinearity; ///< empty: not given

  bool operator==(const Initializer &) const = default;
  /// What it is for a tensor of this shape, as it is on a single device. Where that has none,
  /// `problem` says why, to be read behind the tensor's name.
  std::optional<InitialValues> valuesOf(llvm::ArrayRef<int64_t> shape, std::string &problem) const;
};

/// Calls `visit(key, field)` for each argument.
template <typename Init, typename Visitor> void visitInitializer(Init &init, Visitor visit) {
  visit("mean", init.mean);
  visit("std", init.std);
  visit("a", init.a);
  visit("b", init.b);
  visit("gain", init.gain);
  visit("value", init.value);
  visit("mode", init.mode);
  visit("nonlinearity", init.nonlinearity);
}

/// Appends what is wrong with them by themselves, each with the name of its key.
void validateInitializers(llvm::ArrayRef<Initializer> initializers,
                          std::vector<std::string> &problems);

} // namespace shardc::plan

#endif // SHARDC_IMPORTERS_PLAN_INITIALIZATION_H
