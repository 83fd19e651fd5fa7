// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/exported/FromProgram.h"

#include <algorithm>
#include <array>

using namespace shardc;
using namespace shardc::collectives;

static constexpr std::string_view viewOps[] = {
    "view",       "reshape",    "_unsafe_view",    "permute",          "transpose",   "t",
    "slice",      "select",     "split",           "split_with_sizes", "unsqueeze",   "squeeze",
    "expand",     "as_strided", "alias",           "detach",           "chunk",       "narrow",
    "unbind",     "unflatten",  "view_as_complex", "view_as_real",     "_conj",       "diagonal",
    "lift_fresh", "getitem",    "view_of",         "_reshape_alias",   "unsafe_split"};
static constexpr std::string_view emptyOps[] = {"empty", "new_empty", "empty_strided",
                                                "new_empty_strided", "empty_like"};
static constexpr std::pair<std::string_view, CollectiveKind> collectiveParts[] = {
    {"all_gather_into_tensor", CollectiveKind::AllGather},
    {"reduce_scatter_tensor", CollectiveKind::ReduceScatter},
    {"all_reduce", CollectiveKind::AllReduce},
    {"all_to_all_single", CollectiveKind::AllToAll},
    {"_c10d_functional.broadcast", CollectiveKind::Broadcast}};

std::string_view shardc::collectives::operatorName(std::string_view target) {
  size_t last = target.rfind('.');
  if (last == std::string_view::npos)
    return target;
  std::string_view front = target.substr(0, last);
  size_t before = front.rfind('.');
  return before == std::string_view::npos ? front : front.substr(before + 1);
}

TargetClass shardc::collectives::classifyTarget(std::string_view target) {
  if (target.find("wait_tensor") != std::string_view::npos)
    return {NodeClass::Wait};
  // Inductor fills the buffer of a bucket before its gather: a kernel.
  if (target.find("_pre_bucket") == std::string_view::npos)
    for (auto [part, kind] : collectiveParts)
      if (target.find(part) != std::string_view::npos)
        return {NodeClass::Collective, kind};
  if (target.starts_with("_operator."))
    return {target == "_operator.getitem" ? NodeClass::Alias : NodeClass::Scalar};
  if (target.starts_with("torch.sym_") || target.starts_with("math."))
    return {NodeClass::Scalar};
  std::string_view op = operatorName(target);
  if (op.starts_with("sym_") || op == "_assert_scalar")
    return {NodeClass::Scalar};
  if (std::find(std::begin(viewOps), std::end(viewOps), op) != std::end(viewOps))
    return {NodeClass::Alias};
  if (std::find(std::begin(emptyOps), std::end(emptyOps), op) != std::end(emptyOps))
    return {NodeClass::Empty};
  if (op.ends_with('_') && !op.ends_with("__"))
    return {NodeClass::InPlace};
  return {NodeClass::Compute};
}
