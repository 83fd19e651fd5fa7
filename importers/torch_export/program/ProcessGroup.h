// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Process groups as the nodes of an exported program name them.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_PROCESSGROUP_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_PROCESSGROUP_H

#include "importers/torch_export/program/Program.h"

namespace shardc::torch_export {

/// What a collective says of its process group.
struct NamedGroup {
  std::string_view name;
  std::optional<int64_t> size; // only some operators say it
};

/// The group that the node names; nothing if it names none.
std::optional<NamedGroup> processGroup(const Node &node);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_PROCESSGROUP_H
