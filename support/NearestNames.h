// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which of many names a misspelt one may have meant: the one search behind every "the nearest are".
#ifndef SHARDC_SUPPORT_NEARESTNAMES_H
#define SHARDC_SUPPORT_NEARESTNAMES_H

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardc {

/// Least number of characters to insert, remove or replace (Levenshtein's distance).
size_t editDistance(std::string_view a, std::string_view b);

/// A name, and the part of it that distance is measured on.
struct NameCandidate {
  std::string_view name;
  std::string_view compared;
};

/// At most `count` candidates within `maxDistance` edits of `wanted`, nearest first; equally near
/// ones by name.
std::vector<std::string_view> nearestNames(std::string_view wanted,
                                           std::span<const NameCandidate> candidates, size_t count,
                                           size_t maxDistance = std::numeric_limits<size_t>::max());

/// `a, b or c`; empty for no names.
std::string listNames(std::span<const std::string_view> names);

/// A set of names to look others up in. Of many thousand names only those are compared that share
/// the longest beginning or the longest end with the wanted one, so that a lookup takes logarithmic
/// time.
class NearestNames {
public:
  explicit NearestNames(std::vector<std::string> names);

  /// The closest name, if it differs in no more than half of its characters; else empty.
  std::string find(std::string_view wanted) const;

private:
  std::vector<std::string> names;         ///< sorted
  std::vector<std::string> reversedNames; ///< each backwards, sorted
};

} // namespace shardc

#endif // SHARDC_SUPPORT_NEARESTNAMES_H
