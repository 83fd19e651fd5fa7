// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/PeerKernels.h"

#include "runtime/plugins/cuda/Operations.h"
#include "runtime/plugins/cuda/PeerText.h"

#include <algorithm>

namespace shardc::plugin::cuda {

namespace {

constexpr unsigned mostThreads = 256;
constexpr uint64_t mostBlocksX = 0x7fffffff, mostBlocksY = 65535;
constexpr uint64_t copyKeys = uint64_t(1) << 32; ///< behind those of reductions

/// The largest power of two up to 16 that divides all of these.
unsigned wordOf(uint64_t bits) { return unsigned((bits | 16) & ~((bits | 16) - 1)); }

} // namespace

PeerKernels::~PeerKernels() {
  for (auto &[key, loaded] : kernels)
    if (loaded.module)
      device.driver().moduleUnload(loaded.module);
}

template <typename Text>
FunctionHandle PeerKernels::kernel(uint64_t key, const char *name, Text text) {
  Loaded &loaded = kernels[key];
  if (loaded.function)
    return loaded.function;
  const Driver &driver = device.driver();
  const std::string what = std::string("loading the kernel '") + name + "' of collectives";
  const std::string code = text();
  if (!loaded.module)
    device.check(device.isEmulated()
                     ? driver.loadBitcode(&loaded.module, code.c_str(), code.size() + 1)
                     : driver.moduleLoad(&loaded.module, code.c_str(), 0, nullptr, nullptr),
                 what);
  device.check(driver.moduleFunction(&loaded.function, loaded.module, name), what);
  return loaded.function;
}

void PeerKernels::launch(FunctionHandle function, uint64_t width, uint64_t rows, unsigned entries,
                         void **params, StreamHandle stream) {
  const auto threads = unsigned(std::min<uint64_t>(mostThreads, (width + 31) / 32 * 32));
  const uint64_t blocks = (width + threads - 1) / threads;
  if (blocks > mostBlocksX)
    throw Failure{SHARDRT_INCOMPATIBLE,
                  "a collective of rows of " + std::to_string(width) + " elements is too large"};
  device.check(device.driver().launch(function, unsigned(blocks),
                                      unsigned(std::min(rows, mostBlocksY)), entries, threads, 1, 1,
                                      0, stream, params, nullptr),
               "launching a kernel of collectives");
}

void PeerKernels::copy(std::span<const shardrt_peer_copy> copies, StreamHandle stream) {
  while (!copies.empty()) {
    auto part = copies.first(std::min<size_t>(copies.size(), peerCopyEntries));
    copies = copies.subspan(part.size());
    uint64_t bits = 0;
    for (const shardrt_peer_copy &c : part) {
      bits |= address(c.to) | address(c.from) | c.bytes;
      if (c.rows > 1)
        bits |= c.to_pitch | c.from_pitch;
      if (c.slabs > 1)
        bits |= c.to_slab | c.from_slab;
    }
    const unsigned word = wordOf(bits);
    PeerCopyTable table{};
    uint64_t width = 1, rows = 1;
    for (size_t i = 0; i < part.size(); ++i) {
      const shardrt_peer_copy &c = part[i];
      table.entries[i] = {address(c.to), address(c.from), c.bytes / word, c.rows * c.slabs, c.rows,
                          c.to_pitch,    c.from_pitch,    c.to_slab,      c.from_slab};
      width = std::max(width, table.entries[i].words);
      rows = std::max(rows, table.entries[i].rows);
    }
    FunctionHandle function = kernel(copyKeys | word, "copy", [&] {
      return device.isEmulated() ? peerCopyIr(word) : peerCopyPtx(word);
    });
    void *params[] = {&table};
    launch(function, width, rows, unsigned(part.size()), params, stream);
  }
}

void PeerKernels::reduce(const shardrt_peer_reduction &reduction, StreamHandle stream) {
  if (reduction.n_sources == 0 || reduction.n_sources > SHARDRT_DEVICE_PEER_MEMBERS ||
      reduction.n_results > SHARDRT_DEVICE_PEER_MEMBERS)
    throw Failure{SHARDRT_INVALID_ARGUMENT,
                  "a reduction of " + std::to_string(reduction.n_sources) + " members"};
  if (reduction.count == 0 || reduction.rows == 0 || reduction.n_results == 0)
    return;
  const auto type = shardrt_type(reduction.type);
  FunctionHandle function =
      kernel(uint64_t(reduction.type) << 8 | reduction.reduction, "reduce", [&] {
        return device.isEmulated() ? peerReductionIr(type, reduction.reduction)
                                   : peerReductionPtx(type, reduction.reduction);
      });
  PeerReductionTable table{};
  for (uint32_t q = 0; q < reduction.n_sources; ++q)
    table.sources[q] = address(reduction.sources[q]);
  for (uint32_t q = 0; q < reduction.n_results; ++q)
    table.results[q] = address(reduction.results[q]);
  shardrt_peer_reduction values = reduction;
  void *params[] = {&table,
                    &values.count,
                    &values.rows,
                    &values.source_pitch,
                    &values.result_pitch,
                    &values.n_sources,
                    &values.n_results};
  launch(function, values.count, values.rows, 1, params, stream);
}

namespace {

shardrt_status reach(void *handle, void *other, char *message) {
  return on(handle, message, [&](Device &device) { device.reach(Device::of(other)); });
}

PeerKernels &kernelsOf(Device &device) {
  if (!device.peers)
    device.peers = std::make_shared<PeerKernels>(device);
  return *static_cast<PeerKernels *>(device.peers.get());
}

} // namespace

const shardrt_device_peers *peerTable() {
  static const shardrt_device_peers table = [] {
    shardrt_device_peers made{};
    made.struct_bytes = sizeof made;
    made.version = SHARDRT_DEVICE_PEER_VERSION;
    made.reach = reach;
    made.copy = [](void *handle, const shardrt_peer_copy *copies, uint64_t n, void *stream,
                   char *message) {
      return on(handle, message, [&](Device &device) {
        kernelsOf(device).copy({copies, size_t(n)}, streamOf(stream));
      });
    };
    made.reduce = [](void *handle, const shardrt_peer_reduction *reduction, void *stream,
                     char *message) {
      return on(handle, message,
                [&](Device &device) { kernelsOf(device).reduce(*reduction, streamOf(stream)); });
    };
    return made;
  }();
  return &table;
}

} // namespace shardc::plugin::cuda
