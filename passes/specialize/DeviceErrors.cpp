// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/specialize/DeviceErrors.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace shardc;

std::vector<Diagnostic> DeviceErrors::collect(MLIRContext *context,
                                              llvm::function_ref<void()> function) {
  std::vector<Diagnostic> errors;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return failure(); // somebody else's
    errors.push_back(std::move(diagnostic));
    return success();
  });
  function();
  return errors;
}

void DeviceErrors::add(std::vector<Diagnostic> errors, ArrayRef<int64_t> devices) {
  for (Diagnostic &error : errors) {
    Key key(error.getLocation().getAsOpaquePointer(), error.str());
    auto entry = entries.find(key);
    if (entry == entries.end())
      entry = entries.insert({std::move(key), Entry{std::move(error), {}}}).first;
    llvm::append_range(entry->second.devices, devices);
  }
}

void DeviceErrors::emit(MLIRContext *context, int64_t numDevices, bool complete) {
  constexpr size_t mostNamed = 8;
  for (auto &[key, entry] : entries) {
    std::vector<int64_t> &devices = entry.devices;
    llvm::sort(devices);
    devices.erase(llvm::unique(devices), devices.end());
    if (static_cast<int64_t>(devices.size()) < numDevices) {
      Diagnostic &note = entry.error.attachNote();
      note << (devices.size() == 1 ? "on device " : "on devices ");
      llvm::interleave(
          ArrayRef(devices).take_front(mostNamed), [&](int64_t device) { note << device; },
          [&] { note << ", "; });
      if (devices.size() > mostNamed)
        note << " and " << devices.size() - mostNamed << " more";
      if (!complete)
        note << "; not all devices were looked at";
    }
    context->getDiagEngine().emit(std::move(entry.error));
  }
}
