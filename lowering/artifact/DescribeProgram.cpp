// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/artifact/Description.h"
#include "lowering/artifact/Passes.h"

#include "dialects/exec/FunctionAttributes.h"

namespace shardc::artifact {
#define GEN_PASS_DEF_DESCRIBEPROGRAM
#include "lowering/artifact/Passes.h.inc"
} // namespace shardc::artifact

using namespace mlir;
using namespace shardc;
using namespace shardc::artifact;

namespace {
struct DescribeProgram : artifact::impl::DescribeProgramBase<DescribeProgram> {
  void runOnOperation() override {
    FailureOr<ProgramDescription> program = describeProgram(getOperation());
    if (failed(program))
      return signalPassFailure();
    getOperation()->setAttr(exec::kProgramAttr, toAttribute(&getContext(), *program));
    numEntries += program->entries.size();
    numParameters += program->parameters.size();
  }
};
} // namespace
