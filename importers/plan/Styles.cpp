// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/plan/Styles.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using llvm::StringRef;

namespace shardc::plan {

bool shards(Style style) {
  return style != Style::Sequence && style != Style::Replicated && style != Style::Unchanged;
}

std::optional<int64_t> shardedDim(Style style, const DimRoles &roles, size_t rank) {
  switch (style) {
  case Style::Colwise:
  case Style::ColwiseGatherOutput:
    return roles.columnDim;
  case Style::Rowwise:
    return roles.rowDim;
  case Style::EmbeddingRowwise:
    return roles.lookupDim;
  case Style::Experts:
    return rank ? std::optional<int64_t>(0) : std::nullopt;
  case Style::Sequence:
  case Style::Replicated:
  case Style::Unchanged:
    break;
  }
  return std::nullopt;
}

/// Says of a weight, whose other dim has the other role, that the one meant has a single element.
static std::string oneElement(Style style, const ModuleBoundary &module,
                              const NamedTensor &weight) {
  const DimRoles &roles = weight.roles;
  bool ofColumns = style == Style::Colwise || style == Style::ColwiseGatherOutput;
  std::optional<int64_t> other = ofColumns ? roles.rowDim : roles.columnDim;
  bool isMissing = ofColumns ? !roles.columnDim : !roles.rowDim && !roles.lookupDim;
  auto hasOne = [&](auto size) {
    return size.value() == 1 && static_cast<int64_t>(size.index()) != *other;
  };
  if (!other || !isMissing || llvm::none_of(llvm::enumerate(weight.shape), hasOne))
    return "";
  std::string shape = llvm::join(
      llvm::map_range(weight.shape, [](int64_t size) { return std::to_string(size); }), "x");
  return "'" + weight.names.front() + "' (" + shape + ") of module '" + module.path +
         "' has one element in the dim that would be shared out; leave the module out, or place it "
         "as 'replicate'";
}

std::string nothingToShard(Style style, const ModuleBoundary &module, const ModelNames &model,
                           const std::string &axis) {
  std::string what = style == Style::EmbeddingRowwise ? "is looked up"
                     : style == Style::Rowwise        ? "can be sharded by rows"
                                                      : "can be sharded by columns";
  for (const ModuleParameter &own : module.parameters)
    if (const NamedTensor &weight = model.parameters[own.index]; !weight.changedBy.empty())
      return "nothing says which dim of '" + weight.names.front() + "' " + what +
             ": between the module '" + module.path + "' and the use of its weight is " +
             weight.changedBy +
             "; place the weight by its dims, e.g. --place 'param:" + weight.names.front() + "=" +
             axis + ":S(0)'";
  for (const ModuleParameter &own : module.parameters)
    if (std::string said = oneElement(style, module, model.parameters[own.index]); !said.empty())
      return said;
  std::vector<std::string> children;
  for (const ModuleBoundary &other : model.modules)
    if (!other.parameters.empty() && StringRef(other.path).starts_with(module.path + "."))
      children.push_back(other.path);
  std::string nearest = nearestNames(module.path, children);
  return "module '" + module.path + "' has no weight of its own that " + what +
         (nearest.empty() ? "" : "; its parts are " + nearest);
}

std::optional<Placement> placementOfBare(Style style, const NamedTensor &parameter) {
  if (style == Style::Unchanged)
    return std::nullopt;
  auto rank = static_cast<int64_t>(parameter.shape.size());
  bool isBias = StringRef(parameter.names.front()).rsplit('.').second == "bias";
  if (!shards(style) || rank == 0 || (style == Style::Rowwise && isBias))
    return Placement::replicate();
  if (rank == 2)
    if (std::optional<int64_t> dim = shardedDim(style, parameter.roles, 2))
      return Placement::shard(*dim);
  switch (style) {
  case Style::Colwise:
  case Style::ColwiseGatherOutput:
    return Placement::shard(std::max<int64_t>(rank - 2, 0));
  case Style::Rowwise:
    return Placement::shard(rank - 1);
  default: // experts and vocabularies come first
    return Placement::shard(0);
  }
}

} // namespace shardc::plan
