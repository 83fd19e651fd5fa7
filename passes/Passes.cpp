// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Passes.h"

#include "dialects/aten/passes/Passes.h"
#include "passes/collectives/Passes.h"
#include "passes/gradient/Passes.h"
#include "passes/gradient/partial/Passes.h"
#include "passes/inference/Passes.h"
#include "passes/localize/Passes.h"
#include "passes/placement/Passes.h"
#include "passes/recompute/Passes.h"
#include "passes/redistribute/Passes.h"
#include "passes/specialize/Passes.h"
#include "passes/training/Passes.h"
#include "passes/verify/Passes.h"

void shardc::registerAllPasses() {
  aten::registerAtenPasses();
  registerPlacementPasses();
  registerSpecializePasses();
  registerVerifyPasses();
  registerRedistributePasses();
  registerGradientPasses();
  registerPartialGradientPasses();
  registerInferencePasses();
  registerTrainingPasses();
  registerLocalizePasses();
  registerCollectivesPasses();
  registerRecomputePasses();
}
