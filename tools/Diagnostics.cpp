// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/Diagnostics.h"

#include "dialects/interfaces/ModelLocation.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace shardc {
namespace {

std::string placeOf(Location location) {
  return isa<UnknownLoc>(location) ? std::string() : describePlace(location);
}

void printPlace(Location location) {
  std::string place = placeOf(location);
  if (!place.empty())
    llvm::errs() << "  at " << place << "\n";
}

} // namespace

ModelDiagnostics::ModelDiagnostics(MLIRContext *context, bool printRemarks)
    : context(context), printRemarks(printRemarks) {
  // Places are named as the user knows them; the op itself is of no use to him.
  context->printOpOnDiagnostic(false);
  handler = context->getDiagEngine().registerHandler([this](Diagnostic &d) { return handle(d); });
}

ModelDiagnostics::~ModelDiagnostics() { context->getDiagEngine().eraseHandler(handler); }

LogicalResult ModelDiagnostics::handle(Diagnostic &diagnostic) {
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Error:
    llvm::WithColor::error() << diagnostic.str() << "\n";
    break;
  case DiagnosticSeverity::Warning:
    llvm::WithColor::warning() << diagnostic.str() << "\n";
    break;
  case DiagnosticSeverity::Remark:
    kept.push_back({diagnostic.str(), getModulePath(diagnostic.getLocation()).str(),
                    placeOf(diagnostic.getLocation())});
    if (!printRemarks)
      return success();
    llvm::WithColor::remark() << diagnostic.str() << "\n";
    break;
  case DiagnosticSeverity::Note:
    llvm::WithColor::note() << diagnostic.str() << "\n";
    break;
  }
  printPlace(diagnostic.getLocation());
  for (Diagnostic &note : diagnostic.getNotes()) {
    llvm::WithColor::note() << note.str() << "\n";
    printPlace(note.getLocation());
  }
  return success();
}

} // namespace shardc
