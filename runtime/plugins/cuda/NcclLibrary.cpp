// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/NcclLibrary.h"

namespace shardc::plugin::cuda {

namespace {

std::string versionText(int number) {
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

} // namespace

std::shared_ptr<const NcclLibrary> NcclLibrary::load(Device &device) {
  auto library = std::make_shared<NcclLibrary>();
  std::string missing;
  auto find = [&](auto &member, const char *symbol) {
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(
        device.symbol(Library::Nccl, symbol));
    if (!member)
      missing += (missing.empty() ? "" : ", ") + std::string(symbol);
  };
#define SHARDC_NCCL_FIND(member, symbol, result, parameters) find(library->member, #symbol);
  SHARDC_NCCL(SHARDC_NCCL_FIND)
#undef SHARDC_NCCL_FIND
  const std::string file = device.fileOf(Library::Nccl);
  // An old library says more by its version than by what it lacks.
  if (library->version)
    library->check("ncclGetVersion", library->version(&library->number));
  if (library->number > 0 && library->number < oldestNccl)
    throw Failure{SHARDRT_INCOMPATIBLE, file + " is " + library->name() + ", and " +
                                            versionText(oldestNccl) + " is needed at least"};
  if (!missing.empty())
    throw Failure{SHARDRT_INCOMPATIBLE, file + " lacks " + missing};
  library->remember = reinterpret_cast<decltype(library->remember)>(
      device.symbol(Library::Nccl, "ncclCommRegister"));
  library->forget = reinterpret_cast<decltype(library->forget)>(
      device.symbol(Library::Nccl, "ncclCommDeregister"));
  return library;
}

std::string NcclLibrary::name() const { return "NCCL " + versionText(number); }

std::string NcclLibrary::describe(const char *function, NcclResult result,
                                  NcclHandle handle) const {
  std::string text = function;
  if (errorText)
    text += std::string(": ") + errorText(result);
  // Its text is about the last call of the process that failed, and may be empty.
  const char *more = lastError ? lastError(handle) : nullptr;
  return more && *more ? text + " (" + more + ")" : text;
}

void NcclLibrary::check(const char *function, NcclResult result, NcclHandle handle) const {
  if (result != ncclOk && result != ncclIsInProgress)
    throw Failure{SHARDRT_INTERNAL, describe(function, result, handle)};
}

} // namespace shardc::plugin::cuda
