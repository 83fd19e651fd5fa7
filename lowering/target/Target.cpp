// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/target/Target.h"

#include "support/NearestNames.h"

#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;

namespace shardc::target {
namespace {

const LimitField *findLimit(StringRef name) {
  for (const LimitField &field : kLimits)
    if (field.name == name)
      return &field;
  return nullptr;
}

std::string limitNames(StringRef like) {
  std::vector<NameCandidate> candidates;
  for (const LimitField &field : kLimits)
    candidates.push_back({field.name, field.name});
  return listNames(nearestNames(like, candidates, /*count=*/3, /*maxDistance=*/6));
}

/// Puts one entry into `target`; says what is wrong with it, or nothing.
std::string readEntry(Target &target, StringRef name, Attribute value) {
  if (auto text = dyn_cast<StringAttr>(value); text && !findLimit(name)) {
    target.properties[name.str()] = text.str();
    return "";
  }
  const LimitField *field = findLimit(name);
  if (!field) {
    std::string names = limitNames(name);
    return "there is no limit of this name" + (names.empty() ? "" : "; the nearest are " + names);
  }
  if (field->real) {
    auto real = dyn_cast<FloatAttr>(value);
    double number = real ? real.getValueAsDouble() : 0;
    if (!(number > 0) || !std::isfinite(number))
      return "it must be a floating-point number above 0";
    target.limits.*field->real = number;
    return "";
  }
  auto integer = dyn_cast<IntegerAttr>(value);
  if (!integer || !integer.getType().isSignlessInteger(64) || integer.getInt() < 1 ||
      integer.getInt() > field->most ||
      (field->powerOfTwo && !llvm::isPowerOf2_64(integer.getInt())))
    return (field->powerOfTwo ? "it must be a power of two of type i64, at most "
                              : "it must be an i64 above 0, at most ") +
           std::to_string(field->most);
  target.limits.*field->integer = integer.getInt();
  return "";
}

} // namespace

StringRef Target::property(StringRef name) const {
  auto it = properties.find(name.str());
  return it == properties.end() ? StringRef() : StringRef(it->second);
}

void setTarget(ModuleOp module, const Target &target) {
  Builder b(module.getContext());
  SmallVector<DataLayoutEntryInterface> entries;
  auto add = [&](StringRef name, Attribute value) {
    entries.push_back(DataLayoutEntryAttr::get(b.getStringAttr(name), value));
  };
  for (const auto &[name, value] : target.properties)
    add(name, b.getStringAttr(value));
  for (const LimitField &field : kLimits)
    if (field.real)
      add(field.name, b.getF64FloatAttr(target.limits.*field.real));
    else
      add(field.name, b.getI64IntegerAttr(target.limits.*field.integer));
  auto device = TargetDeviceSpecAttr::get(b.getContext(), entries);
  DataLayoutEntryInterface only = DataLayoutEntryAttr::get(b.getStringAttr(target.kind), device);
  module->setAttr(DLTIDialect::kTargetSystemDescAttrName,
                  TargetSystemSpecAttr::get(b.getContext(), only));
}

FailureOr<std::optional<Target>> readTarget(ModuleOp module) {
  auto system =
      module->getAttrOfType<TargetSystemSpecInterface>(DLTIDialect::kTargetSystemDescAttrName);
  if (!system)
    return std::optional<Target>();
  if (system.getEntries().size() != 1)
    return module.emitError("the module must name one target in '")
           << DLTIDialect::kTargetSystemDescAttrName << "', not " << system.getEntries().size();
  DataLayoutEntryInterface only = system.getEntries().front();
  Target target;
  target.kind = cast<StringAttr>(only.getKey()).str();
  auto device = dyn_cast<TargetDeviceSpecInterface>(only.getValue());
  if (!device)
    return module.emitError("the target '") << target.kind << "' has no list of properties";
  bool valid = true;
  for (DataLayoutEntryInterface entry : device.getEntries()) {
    auto key = dyn_cast<StringAttr>(entry.getKey());
    std::string problem =
        key ? readEntry(target, key, entry.getValue()) : "properties of targets have names";
    if (problem.empty())
      continue;
    module.emitError("the target '") << target.kind << "' has " << entry << ": " << problem;
    valid = false;
  }
  if (!valid)
    return failure();
  return std::optional<Target>(std::move(target));
}

FailureOr<Limits> readLimits(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  if (!module)
    return Limits();
  FailureOr<std::optional<Target>> target = readTarget(module);
  if (failed(target))
    return failure();
  return *target ? (*target)->limits : Limits();
}

} // namespace shardc::target
