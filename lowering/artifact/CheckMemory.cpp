// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/artifact/MemoryLimit.h"
#include "lowering/artifact/Passes.h"
#include "passes/specialize/AssumedSizes.h"
#include "support/ByteSize.h"

namespace shardc::artifact {
#define GEN_PASS_DEF_CHECKMEMORY
#include "lowering/artifact/Passes.h.inc"
} // namespace shardc::artifact

using namespace mlir;
using namespace shardc;
using namespace shardc::artifact;

namespace {
struct CheckMemory : artifact::impl::CheckMemoryBase<CheckMemory> {
  using CheckMemoryBase::CheckMemoryBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (limit.empty())
      return;
    ModuleOp module = getOperation();
    std::optional<uint64_t> bytes = parseByteSize(limit.getValue());
    if (!bytes || *bytes == 0) {
      module.emitError() << "limit: '" << limit << "' is not a number of bytes, e.g. 2GiB";
      return signalPassFailure();
    }
    FailureOr<ProgramDescription> program = readDescription(module);
    if (failed(program))
      return signalPassFailure();
    std::vector<std::string> sizes;
    for (const auto &entry : assumedSizes(module))
      sizes.push_back((entry.getKey() + "=" + Twine(entry.getValue())).str());
    llvm::sort(sizes);
    if (failed(checkMemoryLimit(module, *program, *bytes, sizes)))
      signalPassFailure();
    numChecked += program->entries.size();
  }
};
} // namespace
