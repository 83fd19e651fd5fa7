// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/Scratch.h"

#include <algorithm>

namespace shardc::plugin::cuda {

StreamScratch::~StreamScratch() {
  for (Pointer old : outgrown)
    device.driver().release(old);
  if (memory)
    device.driver().release(memory);
}

char *StreamScratch::reserve(StreamHandle stream, size_t bytes) {
  if (bytes > capacity) {
    if (isCaptured(device, stream))
      throw Failure{SHARDRT_INTERNAL, "it needs " + std::to_string(bytes) +
                                          " bytes to work in, which the first run outside of a "
                                          "capture would have allocated"};
    size_t wanted = std::max(bytes, 2 * capacity);
    Pointer grown = 0;
    device.check(device.driver().allocate(&grown, wanted),
                 "allocating " + std::to_string(wanted) + " bytes to work in");
    if (memory)
      outgrown.push_back(memory);
    memory = grown;
    capacity = wanted;
  }
  return reinterpret_cast<char *>(memory);
}

bool isCaptured(const Device &device, StreamHandle stream) {
  int status = captureNone;
  device.check(device.driver().captureStatus(stream, &status), "asking about the capture");
  return status != captureNone;
}

} // namespace shardc::plugin::cuda
