// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/LtLibrary.h"

namespace shardc::plugin::cuda {

LtLibrary::LtLibrary(Device &device) {
  EntryFinder finder([&](const char *name) { return device.symbol(Library::CublasLt, name); });
  LtLibrary &entries = *this;
  finder.find(getVersion, "cublasLtGetVersion");
  SHARDC_CUBLASLT(SHARDC_ENTRY_FIND)
  version = getVersion ? getVersion() : 0;
  finder.require(device.fileOf(Library::CublasLt), long(version), long(oldestLt),
                 "is cuBLASLt " + std::to_string(version) + ", and the plugin needs",
                 std::to_string(oldestLt));
}

void LtLibrary::check(const char *function, LtStatus status) const {
  if (status == ltSuccess)
    return;
  static const std::pair<LtStatus, const char *> names[] = {
      {1, "not initialised"},       {3, "out of memory"},  {7, "invalid value"},
      {8, "architecture mismatch"}, {11, "mapping error"}, {13, "execution failed"},
      {14, "internal error"},       {15, "not supported"}, {16, "license error"}};
  std::string text = "status " + std::to_string(status);
  for (auto [number, name] : names)
    if (number == status)
      text = name;
  throw Failure{status == 3 ? SHARDRT_OUT_OF_MEMORY : SHARDRT_INTERNAL,
                std::string(function) + ": " + text};
}

} // namespace shardc::plugin::cuda
