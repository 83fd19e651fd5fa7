// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What comes beside an exported program: who its process groups are, and how long its kernels take.

#ifndef SHARDC_PASSES_COLLECTIVES_EXPORTED_SIDEFILES_H
#define SHARDC_PASSES_COLLECTIVES_EXPORTED_SIDEFILES_H

#include "importers/torch_export/program/Program.h"
#include "passes/collectives/core/Graph.h"

#include <map>
#include <optional>
#include <unordered_map>

namespace shardc::collectives {

/// Process groups by the name that the program calls them: their ranks, or where those are unknown
/// their size alone.
using ProcessGroups = std::map<std::string, Group, std::less<>>;

/// Parses {"dp": [0, 1, ...], "tp": [[0, 2], [1, 3]], "ep": 8, ...}: ranks, several groups of
/// equally many ranks, or a size. If `model` is a member, its value is such an object. `error` has
/// all mistakes.
std::optional<ProcessGroups> parseGroups(std::string_view json, std::string &error,
                                         std::string_view model = {});

/// Every group whose size a node of the program says, without ranks.
ProcessGroups groupsInProgram(const torch_export::ExportedProgram &program);

/// Lets a map of strings be asked for views.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

/// Microseconds by the name of a node.
using Durations = std::unordered_map<std::string, double, TextHash, std::equal_to<>>;

/// Parses {"mm": 1449.7, ...}. `error` has all mistakes.
std::optional<Durations> parseDurations(std::string_view json, std::string &error);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_EXPORTED_SIDEFILES_H
