// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libshardrt_cuda.so: programs on CUDA's devices, and on one that is emulated
// (docs/cuda-runtime.md).
#include "runtime/plugins/cuda/Operations.h"

using namespace shardc::plugin;
using namespace shardc::plugin::cuda;

namespace {

shardrt_status open(const shardrt_device_options *options, void **device,
                    shardrt_device_facts *facts, char *message) {
  return guarded(message, [&] {
    auto opened = std::make_unique<Device>(*options);
    *facts = opened->facts();
    *device = opened.release();
  });
}

void close(void *device) { delete &Device::of(device); }

shardrt_device_plugin makePluginTable() {
  shardrt_device_plugin table{};
  table.struct_bytes = sizeof table;
  table.version = SHARDRT_DEVICE_VERSION;
  table.name = "cuda";
  table.open = open;
  table.close = close;
  addMemory(table);
  addStreams(table);
  addKernels(table);
  addGraphs(table);
  table.communication = communicationTable();
  table.peers = peerTable();
  return table;
}

} // namespace

extern "C" __attribute__((visibility("default"))) const shardrt_device_plugin *
shardrt_device_query(void) {
  static const shardrt_device_plugin table = makePluginTable();
  return &table;
}
