// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"

using namespace mlir;

namespace shardc::aten {
namespace {

/// What an op that is known by name only may read and write beside its tensors.
struct UnknownResource : SideEffects::Resource::Base<UnknownResource> {
  StringRef getName() final { return "Unknown"; }
};

} // namespace

LogicalResult OpaqueOp::verify() {
  ArrayRef<int64_t> aliases = getAliases();
  if (aliases.empty())
    return getInPlace() ? emitOpError("is in place, but 'aliases' does not say where") : success();
  if (aliases.size() != getNumResults())
    return emitOpError("lists ") << aliases.size() << " aliases for " << getNumResults()
                                 << " results";
  for (int64_t alias : aliases)
    if (alias < -1 || alias >= int64_t(getOperands().size()) ||
        (alias >= 0 && !isa<RankedTensorType>(getOperands()[alias].getType())))
      return emitOpError("alias ") << alias << " is no tensor among its operands";
  return success();
}

void OpaqueOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), UnknownResource::get());
  effects.emplace_back(MemoryEffects::Write::get(), UnknownResource::get());
}

// Its arithmetic is not known: the bytes it touches are all that it is charged for.
std::optional<double> OpaqueOp::getFlops() { return 0; }

} // namespace shardc::aten
