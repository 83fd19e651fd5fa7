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
  NcclLibrary &entries = *library;
  EntryFinder finder([&](const char *name) { return device.symbol(Library::Nccl, name); });
  SHARDC_NCCL(SHARDC_ENTRY_FIND)
  if (library->version)
    library->check("ncclGetVersion", library->version(&library->number));
  finder.require(device.fileOf(Library::Nccl), library->number, oldestNccl,
                 "is " + library->name() + ", and the plugin needs", versionText(oldestNccl));
  finder.findOptional(library->remember, "ncclCommRegister");
  finder.findOptional(library->forget, "ncclCommDeregister");
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
