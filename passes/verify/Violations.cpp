// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/verify/Violations.h"

#include "dialects/interfaces/ModelLocation.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace shardc;

void Violations::add(Location place, const Twine &what) {
  constexpr size_t placesShown = 4;
  Entry &entry = entries[what.str()];
  ++entry.count;
  if (entry.places.size() < placesShown)
    entry.places.push_back(place);
}

void Violations::add(Operation *op, const Twine &what) {
  add(op->getLoc(), "'" + op->getName().getStringRef() + "' " + what);
}

LogicalResult Violations::report() const {
  for (const auto &[what, entry] : entries) {
    Location first = entry.places.front();
    InFlightDiagnostic diagnostic = emitError(first) << what;
    if (StringRef module = getModulePath(first); !module.empty())
      diagnostic << " (in " << module << ")";
    for (Location place : ArrayRef(entry.places).drop_front()) {
      Diagnostic &note = diagnostic.attachNote(place) << "also here";
      if (StringRef module = getModulePath(place); !module.empty())
        note << ", in " << module;
    }
    int64_t more = entry.count - static_cast<int64_t>(entry.places.size());
    if (more > 0)
      diagnostic.attachNote(first) << "and at " << more << " more places";
  }
  return success(entries.empty());
}
