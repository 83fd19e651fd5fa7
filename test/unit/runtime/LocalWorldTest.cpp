// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks as threads: each member does its part of a collective, or the last one the parts of all.
#include "test/unit/runtime/Ranks.h"

using namespace shardc::rt;

namespace {

test::WorldKind local(const char *name, Sharing sharing) {
  return {name, [sharing](uint32_t world) { return makeLocalWorld(world, sharing); }};
}

} // namespace

SHARDRT_HOST_CONFORMANCE(Local, local("automatic", Sharing::Automatic),
                         local("each", Sharing::Each), local("last", Sharing::Last));
