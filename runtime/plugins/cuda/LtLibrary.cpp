// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/LtLibrary.h"

namespace shardc::plugin::cuda {

LtLibrary::LtLibrary(Device &device) {
  std::string missing;
  auto find = [&](auto &member, const char *symbol) {
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(
        device.symbol(Library::CublasLt, symbol));
    if (!member)
      missing += (missing.empty() ? "" : ", ") + std::string(symbol);
  };
  find(getVersion, "cublasLtGetVersion");
#define SHARDC_CUBLASLT_FIND(member, symbol, parameters) find(member, #symbol);
  SHARDC_CUBLASLT(SHARDC_CUBLASLT_FIND)
#undef SHARDC_CUBLASLT_FIND
  const std::string file = device.fileOf(Library::CublasLt);
  version = getVersion ? getVersion() : 0;
  // An old library says more by its version than by what it lacks.
  if (version > 0 && version < oldestLt)
    throw Failure{SHARDRT_INCOMPATIBLE, file + " is cuBLASLt " + std::to_string(version) +
                                            ", and " + std::to_string(oldestLt) +
                                            " is needed at least"};
  if (!missing.empty())
    throw Failure{SHARDRT_INCOMPATIBLE, file + " lacks " + missing};
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
