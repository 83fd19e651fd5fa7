// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exported programs with collectives already in them (c10d functional ops), as graphs for the
// simulator and the optimiser. Nothing is folded: node i of the graph is node i of the program.

#pragma once

#include "importers/torch_export/program/Program.h"
#include "passes/collectives/core/Graph.h"

#include <map>
#include <optional>

namespace shardc::collectives {

/// Process groups by the name that the program calls them: their ranks, or where those are unknown
/// their size alone.
using ProcessGroups = std::map<std::string, Group, std::less<>>;

/// Parses {"0": [0, 1, ...], "1": 8, ...}.
std::optional<ProcessGroups> parseGroups(std::string_view json, std::string &error);

/// Microseconds by the name of a node.
using Durations = std::map<std::string, double, std::less<>>;

/// Parses {"mm": 1449.7, ...}.
std::optional<Durations> parseDurations(std::string_view json, std::string &error);

/// What a node is, told by its target; kind is set for collectives.
struct TargetClass {
  NodeClass nodeClass;
  CollectiveKind kind = CollectiveKind::AllGather;
};
TargetClass classifyTarget(std::string_view target);

/// Fills a graph from a program. Kernels without a duration are priced by the bytes they move.
/// Unknown operators are kernels, and so are collectives that the model does not support. Reports
/// all mistakes together (groups that are missing or differ in size from what a node says, ...),
/// one per entry of `errors`; the result is empty if there is any.
std::optional<Graph> graphFromProgram(const torch_export::ExportedProgram &program,
                                      const ProcessGroups &groups, const Durations &durations,
                                      const cost::CostModel &model,
                                      std::vector<std::string> &errors);

} // namespace shardc::collectives
