// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/archive/NearestNames.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace shardc {

namespace {

/// Names on each side of the place where the wanted one would be.
constexpr std::ptrdiff_t neighbours = 8;

std::string reversed(std::string_view text) { return {text.rbegin(), text.rend()}; }

} // namespace

size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

NearestNames::NearestNames(std::vector<std::string> list) : names(std::move(list)) {
  for (const std::string &name : names)
    reversedNames.push_back(reversed(name));
  std::sort(names.begin(), names.end());
  std::sort(reversedNames.begin(), reversedNames.end());
}

std::string NearestNames::find(std::string_view wanted) const {
  std::string best;
  size_t distance = wanted.size() / 2 + 1; // more is no likeness
  auto look = [&](const std::vector<std::string> &sorted, const std::string &key, bool backwards) {
    auto middle = std::lower_bound(sorted.begin(), sorted.end(), key);
    auto first = middle - std::min(neighbours, middle - sorted.begin());
    auto last = middle + std::min(neighbours, sorted.end() - middle);
    for (auto it = first; it != last; ++it)
      if (size_t here = editDistance(key, *it); here < distance) {
        distance = here;
        best = backwards ? reversed(*it) : *it;
      }
  };
  look(names, std::string(wanted), false);
  look(reversedNames, reversed(wanted), true);
  return best;
}

} // namespace shardc
