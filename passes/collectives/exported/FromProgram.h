// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exported programs with collectives already in them (c10d functional ops), as graphs for the
// simulator and the optimiser. Nothing is folded: node i of the graph is node i of the program.

#ifndef SHARDC_PASSES_COLLECTIVES_EXPORTED_FROMPROGRAM_H
#define SHARDC_PASSES_COLLECTIVES_EXPORTED_FROMPROGRAM_H

#include "passes/collectives/exported/SideFiles.h"

namespace shardc::collectives {

/// What a node is, told by its target; kind is set for collectives.
struct TargetClass {
  NodeClass nodeClass;
  CollectiveKind kind = CollectiveKind::AllGather;
};
TargetClass classifyTarget(std::string_view target);

/// "torch.ops.NAMESPACE.NAME.OVERLOAD" -> "NAME"; the last word of anything shorter.
std::string_view operatorName(std::string_view target);

/// A symbolic size without an example value counts as this many elements.
inline constexpr int64_t unknownExtent = 512;

/// Fills a graph from a program. Kernels without a duration are priced by their arithmetic (where
/// the model has a peak for it) and the bytes they move.
/// Unknown operators are kernels, and so are collectives that the model does not support. Reports
/// all mistakes together (groups that are missing or differ in size from what a node says, ...),
/// one per entry of `errors`; the result is empty if there is any. `sizesAreFrom` is for messages:
/// where `groups` has the sizes from.
std::optional<Graph> graphFromProgram(const torch_export::ExportedProgram &program,
                                      const ProcessGroups &groups, const Durations &durations,
                                      const cost::CostModel &model,
                                      std::vector<std::string> &errors,
                                      std::string_view sizesAreFrom = "in the groups file");

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_EXPORTED_FROMPROGRAM_H
