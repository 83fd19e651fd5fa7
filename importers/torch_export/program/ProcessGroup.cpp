// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/program/ProcessGroup.h"

namespace shardc::torch_export {

std::optional<NamedGroup> processGroup(const Node &node) {
  std::optional<std::string_view> name;
  std::optional<int64_t> size;
  for (const NamedArgument &input : node.inputs) {
    if (input.name == "group_name")
      if (auto *text = std::get_if<std::string_view>(&input.value))
        name = *text;
    if (input.name == "group_size")
      if (auto *number = std::get_if<int64_t>(&input.value))
        size = *number;
  }
  if (!name)
    return std::nullopt;
  return NamedGroup{*name, size};
}

} // namespace shardc::torch_export
