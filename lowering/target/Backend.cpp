// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/target/Backend.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"

using namespace mlir;

namespace shardc::target {
namespace {

/// Filled while the tool starts, as MLIR's registry of passes is.
std::vector<std::unique_ptr<Backend>> &registry() {
  static std::vector<std::unique_ptr<Backend>> backends;
  return backends;
}

/// "'cpu', 'cpu:NAME' or 'toy'".
std::string knownForms() {
  std::vector<std::string> forms;
  for (const std::unique_ptr<Backend> &backend : registry())
    for (const std::string &form : backend->forms())
      forms.push_back("'" + form + "'");
  if (forms.empty())
    return "none, since no target is registered";
  std::string last = std::move(forms.back());
  forms.pop_back();
  return forms.empty() ? last : llvm::join(forms, ", ") + " or " + last;
}

} // namespace

void registerBackend(std::unique_ptr<Backend> backend) {
  if (findBackend(backend->kind()))
    llvm::report_fatal_error("two targets are called '" + backend->kind() + "'");
  registry().push_back(std::move(backend));
}

std::vector<const Backend *> registeredBackends() {
  std::vector<const Backend *> list;
  for (const std::unique_ptr<Backend> &backend : registry())
    list.push_back(backend.get());
  return list;
}

const Backend *findBackend(StringRef kind) {
  for (const std::unique_ptr<Backend> &backend : registry())
    if (backend->kind() == kind)
      return backend.get();
  return nullptr;
}

llvm::Expected<Target> resolveTarget(StringRef spec) {
  auto [kind, chip] = spec.split(':');
  bool hasChip = spec.contains(':');
  const Backend *backend = findBackend(kind);
  if (!backend || (hasChip && chip.empty()))
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "unknown target '" + spec + "'; use " + knownForms());
  return backend->resolve(hasChip ? std::optional(chip) : std::nullopt);
}

FailureOr<std::pair<const Backend *, Target>> backendOf(ModuleOp module) {
  FailureOr<std::optional<Target>> target = readTarget(module);
  if (failed(target))
    return failure();
  if (!*target)
    return module.emitError("the module names no target; exec-set-target gives it one");
  const Backend *backend = findBackend((*target)->kind);
  if (!backend)
    return module.emitError("unknown target '") << (*target)->kind << "'; use " << knownForms();
  return std::pair(backend, std::move(**target));
}

} // namespace shardc::target
