// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which of many names a misspelt one may have meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardc {

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

/// Least number of characters to insert, remove or replace (Levenshtein's distance).
size_t editDistance(std::string_view a, std::string_view b);

} // namespace shardc
