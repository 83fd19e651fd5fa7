// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/UpdateChecks.h"

using namespace mlir;

namespace shardc::memory {

UpdateChecks::UpdateChecks(func::FuncOp entry, Violations &violations) : violations(violations) {
  if (!entry->hasAttr(exec::kInPlaceAttr))
    return;
  for (BlockArgument argument : entry.getArguments())
    if (auto updated =
            entry.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), exec::kUpdatesAttr))
      oldValues[argument] = entry.getArgument(updated.getInt());
}

/// An element that both may have.
static bool mayOverlap(const View &a, const View &b) {
  return !a.region || !b.region || findCommon(*a.region, *b.region);
}

static std::string nameOf(Value parameter) {
  return "argument " + std::to_string(cast<BlockArgument>(parameter).getArgNumber());
}

void UpdateChecks::checkOld(Operation *op, Value memory, const View &view) {
  auto it = written.find(memory);
  if (it != written.end() &&
      llvm::any_of(it->second, [&](const View &part) { return mayOverlap(part, view); }))
    violations.add(op, "reads the old value of " + nameOf(memory) +
                           ", which its new value may have overwritten");
}

void UpdateChecks::read(Operation *op, const View &view) {
  if (!isUpdate(view.root))
    checkOld(op, view.root, view);
}

void UpdateChecks::readInPlace(Operation *op, const View &view) {
  if (isUpdate(view.root))
    checkOld(op, memoryOf(view.root), view);
}

void UpdateChecks::readInFlight(Value token, const View &view) {
  if (!isUpdate(view.root))
    flights[token].push_back(view);
}

void UpdateChecks::write(Operation *op, const View &view) {
  if (!isUpdate(view.root))
    return;
  Value memory = memoryOf(view.root);
  if (!isCommitted)
    violations.add(op, "writes the new value of " + nameOf(memory) + " in front of 'exec.commit'");
  for (auto &[token, views] : flights)
    if (llvm::any_of(
            views, [&](const View &part) { return part.root == memory && mayOverlap(part, view); }))
      violations.add(op, "overwrites " + nameOf(memory) + ", which a collective in flight reads");
  written[memory].push_back(view);
}

} // namespace shardc::memory
