// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/interfaces/ModelLocation.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace shardc {
namespace {

/// Depth-first search in the order of fusion. `visit` returns true to stop.
bool walkLocation(Location location, llvm::function_ref<bool(Location)> visit) {
  if (visit(location))
    return true;
  return llvm::TypeSwitch<Location, bool>(location)
      .Case([&](FusedLoc fused) {
        return llvm::any_of(fused.getLocations(),
                            [&](Location part) { return walkLocation(part, visit); });
      })
      .Case([&](NameLoc named) { return walkLocation(named.getChildLoc(), visit); })
      .Case([&](CallSiteLoc call) {
        return walkLocation(call.getCallee(), visit) || walkLocation(call.getCaller(), visit);
      })
      .Default([](Location) { return false; });
}

} // namespace

Location makeModelLocation(MLIRContext *context, StringRef node, StringRef modulePath,
                           StringRef file, unsigned line) {
  Location location = UnknownLoc::get(context);
  if (!file.empty())
    location = FileLineColLoc::get(context, file, line, 0);
  if (!node.empty())
    location = NameLoc::get(StringAttr::get(context, node), location);
  if (!modulePath.empty())
    location = FusedLoc::get(context, {location}, StringAttr::get(context, modulePath));
  return location;
}

StringRef getModulePath(Location location) {
  StringRef found;
  walkLocation(location, [&](Location part) {
    if (auto fused = dyn_cast<FusedLoc>(part))
      if (auto path = dyn_cast_or_null<StringAttr>(fused.getMetadata()))
        found = path.getValue();
    return !found.empty();
  });
  return found;
}

StringRef getNodeName(Location location) {
  StringRef found;
  walkLocation(location, [&](Location part) {
    if (auto named = dyn_cast<NameLoc>(part))
      found = named.getName().getValue();
    return !found.empty();
  });
  return found;
}

FileLineColLoc getSourceLine(Location location) {
  FileLineColLoc found;
  walkLocation(location, [&](Location part) {
    found = dyn_cast<FileLineColLoc>(part);
    return static_cast<bool>(found);
  });
  return found;
}

static constexpr StringLiteral kBackward = "backward";

Location makeBackwardLocation(Location forward) {
  if (isBackward(forward))
    return forward;
  FileLineColLoc line = getSourceLine(forward);
  StringRef node = getNodeName(forward);
  std::string name = node.empty() ? kBackward.str() : (kBackward + " of " + node).str();
  return makeModelLocation(forward.getContext(), name, getModulePath(forward),
                           line ? line.getFilename().getValue() : StringRef(),
                           line ? line.getLine() : 0);
}

bool isBackward(Location location) {
  StringRef node = getNodeName(location);
  return node == kBackward || node.starts_with("backward of ");
}

std::string describePlace(Location location) {
  std::string text = getModulePath(location).str();
  if (text.empty())
    text = getNodeName(location).str();
  if (FileLineColLoc line = getSourceLine(location)) {
    StringRef file = llvm::sys::path::filename(line.getFilename().getValue());
    // Line 0 is the file as a whole.
    if (line.getLine() == 0)
      return text.empty() ? file.str() : text;
    std::string source = (file + ":" + llvm::Twine(line.getLine())).str();
    text += text.empty() ? source : " (" + source + ")";
  }
  return text.empty() ? "an unknown place" : text;
}

} // namespace shardc
