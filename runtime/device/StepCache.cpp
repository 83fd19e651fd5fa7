// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/StepCache.h"

#include <algorithm>

namespace shardc::rt {

DeviceStep &StepCache::find(const std::vector<uint64_t> &key, bool &isNew) {
  auto found = std::ranges::find_if(steps, [&](auto &step) { return step->key == key; });
  isNew = found == steps.end();
  if (isNew && steps.size() == most) {
    found = std::ranges::min_element(steps, {}, [](auto &step) { return step->lastUse; });
    *found = std::make_unique<DeviceStep>();
  } else if (isNew) {
    found = steps.insert(steps.end(), std::make_unique<DeviceStep>());
  }
  (*found)->key = key;
  (*found)->lastUse = ++uses;
  return **found;
}

} // namespace shardc::rt
