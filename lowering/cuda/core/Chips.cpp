// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/core/Chips.h"

#include "support/NearestNames.h"

#include <algorithm>

namespace shardc::cuda {
namespace {

constexpr Chip kChips[] = {
    {80, 70},
    {90, 78},
    {100, 86},
};
constexpr std::string_view kEmulated = "emulated";

std::vector<std::string> chipNames() {
  std::vector<std::string> names;
  for (const Chip &chip : kChips)
    names.push_back(chip.name());
  return names;
}

/// What is wrong with a name that is none of a chip.
std::string unknownName(std::string_view name) {
  if (name.empty())
    return "a name is missing between commas";
  std::vector<std::string> names = chipNames();
  std::vector<NameCandidate> candidates;
  for (const std::string &known : names)
    candidates.push_back({known, known});
  candidates.push_back({kEmulated, kEmulated});
  std::vector<std::string_view> near = nearestNames(name, candidates, /*count=*/1,
                                                    /*maxDistance=*/2);
  std::string text = "'" + std::string(name) + "' is no chip that kernels are compiled for";
  if (!near.empty())
    text += "; did you mean " + std::string(near.front()) + "?";
  return text;
}

} // namespace

std::span<const Chip> knownChips() { return kChips; }

std::string ChipChoice::text() const {
  if (emulated)
    return std::string(kEmulated);
  std::string text;
  for (const Chip &chip : chips)
    text += (text.empty() ? "" : ",") + chip.name();
  return text;
}

bool keepsPtx(std::span<const Chip> chips, size_t index) {
  if (index + 1 == chips.size())
    return true;
  unsigned generation = chips[index].number / 10, next = chips[index + 1].number;
  bool isNeighbour = next / 10 == generation || next == 10 * (generation + 1);
  return !isNeighbour;
}

ChipChoice chooseChips(std::string_view text) {
  ChipChoice choice;
  if (text.empty()) {
    choice.chips.assign(std::begin(kChips), std::end(kChips));
    return choice;
  }
  std::vector<std::string> problems;
  while (true) {
    size_t comma = text.find(',');
    std::string_view name = text.substr(0, comma);
    auto chip = std::ranges::find_if(kChips, [&](const Chip &c) { return c.name() == name; });
    if (name == kEmulated && choice.emulated)
      problems.push_back("'emulated' is named twice");
    else if (name == kEmulated)
      choice.emulated = true;
    else if (chip == std::end(kChips))
      problems.push_back(unknownName(name));
    else if (std::ranges::any_of(choice.chips,
                                 [&](const Chip &c) { return c.number == chip->number; }))
      problems.push_back("'" + std::string(name) + "' is named twice");
    else
      choice.chips.push_back(*chip);
    if (comma == std::string_view::npos)
      break;
    text.remove_prefix(comma + 1);
  }
  if (choice.emulated && !choice.chips.empty())
    problems.push_back("the emulated device has an artifact of its own: it is no part of a list");
  std::ranges::sort(choice.chips, {}, &Chip::number);
  for (const std::string &problem : problems)
    choice.problem += (choice.problem.empty() ? "" : "; ") + problem;
  if (!problems.empty()) {
    std::vector<std::string> names = chipNames();
    names.emplace_back(kEmulated);
    std::vector<std::string_view> all(names.begin(), names.end());
    choice.problem += " (use " + listNames(all) + ", chips also as a list with commas)";
  }
  return choice;
}

} // namespace shardc::cuda
