// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What repeated layers have in common: texts that differ only in the numbers of module paths, such
// as `model.layers.0.mlp` and `model.layers.1.mlp`, are one.
#ifndef SHARDC_PASSES_REPORT_LAYERPATTERN_H
#define SHARDC_PASSES_REPORT_LAYERPATTERN_H

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace shardc {

/// A text with its numbers of layers taken out. A number counts where it is a component of a path:
/// after a dot that follows a name or another such number. `0.5` and `file.py:12` have none.
struct LayerPattern {
  explicit LayerPattern(std::string_view text);

  std::vector<std::string> pieces; ///< around the numbers: one more than there are numbers
  std::vector<uint64_t> numbers;

  /// The pieces with `*` between them: equal for texts of one pattern.
  std::string key() const;
};

/// Texts of one pattern.
class LayerGroup {
public:
  explicit LayerGroup(const LayerPattern &first)
      : pieces(first.pieces), seen(first.numbers.size()) {
    add(first);
  }
  void add(const LayerPattern &pattern);

  /// `model.layers.{0-11}.mlp`: a number that is always the same as it is, a range without gaps as
  /// above, anything else as `*`.
  std::string str() const;

private:
  std::vector<std::string> pieces;
  std::vector<std::set<uint64_t>> seen;
};

} // namespace shardc

#endif // SHARDC_PASSES_REPORT_LAYERPATTERN_H
