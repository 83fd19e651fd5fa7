// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/NearestNames.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace shardc {

namespace {

/// Names on each side of the place where the wanted one would be.
constexpr std::ptrdiff_t neighbours = 8;

std::string reversed(std::string_view text) { return {text.rbegin(), text.rend()}; }

/// The names around the place where `key` would be.
std::span<const std::string> around(const std::vector<std::string> &sorted,
                                    const std::string &key) {
  auto middle = std::lower_bound(sorted.begin(), sorted.end(), key);
  auto first = middle - std::min(neighbours, middle - sorted.begin());
  return {first, middle + std::min(neighbours, sorted.end() - middle)};
}

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

std::vector<std::string_view> nearestNames(std::string_view wanted,
                                           std::span<const NameCandidate> candidates, size_t count,
                                           size_t maxDistance) {
  std::vector<std::pair<size_t, std::string_view>> ranked;
  for (const NameCandidate &candidate : candidates)
    if (size_t distance = editDistance(wanted, candidate.compared); distance <= maxDistance)
      ranked.emplace_back(distance, candidate.name);
  std::sort(ranked.begin(), ranked.end());
  ranked.resize(std::min(ranked.size(), count));
  std::vector<std::string_view> names;
  for (const auto &[distance, name] : ranked)
    names.push_back(name);
  return names;
}

std::string listNames(std::span<const std::string_view> names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

NearestNames::NearestNames(std::vector<std::string> list) : names(std::move(list)) {
  for (const std::string &name : names)
    reversedNames.push_back(reversed(name));
  std::sort(names.begin(), names.end());
  std::sort(reversedNames.begin(), reversedNames.end());
}

std::string NearestNames::find(std::string_view wanted) const {
  std::vector<std::string> found;
  for (const std::string &name : around(names, std::string(wanted)))
    found.push_back(name);
  for (const std::string &name : around(reversedNames, reversed(wanted)))
    found.push_back(reversed(name));
  std::vector<NameCandidate> candidates;
  for (const std::string &name : found)
    candidates.push_back({name, name});
  // More than half is no likeness.
  std::vector<std::string_view> best = nearestNames(wanted, candidates, 1, wanted.size() / 2);
  return best.empty() ? std::string() : std::string(best.front());
}

} // namespace shardc
