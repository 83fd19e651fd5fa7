// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/NcclWorld.h"

#include "runtime/plugins/cuda/Operations.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>
#include <utility>

namespace shardc::plugin::cuda {

namespace {

std::string wishedReduce() {
  const char *text = std::getenv("SHARDRT_NCCL_REDUCE");
  std::string wish = text && *text ? text : "auto";
  if (wish != "auto" && wish != "nccl" && wish != "runtime")
    throw Failure{SHARDRT_INVALID_ARGUMENT,
                  "SHARDRT_NCCL_REDUCE is '" + wish + "': expected 'auto', 'nccl' or 'runtime'"};
  return wish;
}

} // namespace

NcclWorld::NcclWorld(Device &device, const shardrt_device_comm_world &world)
    : device(device), nccl(NcclLibrary::load(device)), runtime(world), reduction(device) {
  const std::string wish = wishedReduce();
  reduces = wish == "nccl"      ? NcclReduces::Everything
            : wish == "runtime" ? NcclReduces::Nothing
                                : NcclReduces::SameMeaning;
  NcclId id{};
  static_assert(sizeof id.bytes == SHARDRT_DEVICE_COMM_ID_BYTES);
  std::memcpy(id.bytes, world.id, sizeof id.bytes);
  NcclConfig config;
  config.blocking = 0;
  try {
    nccl->check("ncclCommInitRankConfig",
                nccl->init(&everybody, world.world_size, id, world.rank, &config));
    settle(everybody, "ncclCommInitRankConfig");
  } catch (...) {
    abort();
    throw;
  }
}

NcclWorld::~NcclWorld() = default;

void NcclWorld::settle(NcclHandle handle, const char *function) {
  std::chrono::microseconds pause(5);
  while (true) {
    NcclResult state = ncclOk;
    nccl->check("ncclCommGetAsyncError", nccl->asyncError(handle, &state), handle);
    if (state == ncclOk)
      return;
    if (state != ncclIsInProgress)
      throw Failure{SHARDRT_ABORTED, nccl->describe(function, state, handle)};
    if (mustStop())
      throw Failure{SHARDRT_ABORTED, std::string(function) + " was stopped"};
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(1000));
  }
}

NcclHandle NcclWorld::split(int color, int key) {
  NcclConfig config;
  config.blocking = 0;
  // If it fails, `abort` ends what there is by then.
  nccl->check("ncclCommSplit", nccl->split(everybody, color, key, &unfinished, &config), everybody);
  settle(everybody, "ncclCommSplit");
  if (color != ncclNoColor)
    settle(unfinished, "ncclCommSplit");
  return std::exchange(unfinished, nullptr);
}

/// Every split is one of all ranks. Sets that have no rank in common are made by the same one.
void NcclWorld::connect(std::span<const shardrt_device_comm_group> list) {
  std::lock_guard lock(mutex);
  std::vector<std::vector<uint32_t>> sets;
  std::vector<uint32_t> all(size_t(runtime.world_size));
  std::iota(all.begin(), all.end(), 0u);
  for (const shardrt_device_comm_group &group : list) {
    std::vector<uint32_t> members(group.members, group.members + group.n_members);
    if (members == all)
      groups[members] = everybody;
    else if (members.size() > 1)
      sets.push_back(std::move(members));
  }
  const auto self = uint32_t(runtime.rank);
  while (!sets.empty()) {
    std::vector<char> taken(all.size(), 0);
    std::vector<std::vector<uint32_t>> later;
    int colors = 0, color = ncclNoColor, key = 0;
    std::vector<uint32_t> own;
    for (std::vector<uint32_t> &members : sets) {
      if (std::ranges::any_of(members, [&](uint32_t member) { return taken[member] != 0; })) {
        later.push_back(std::move(members));
        continue;
      }
      for (uint32_t member : members)
        taken[member] = 1;
      if (auto found = std::ranges::find(members, self); found != members.end()) {
        color = colors;
        key = int(found - members.begin());
        own = members;
      }
      ++colors;
    }
    NcclHandle made = split(color, key);
    if (color != ncclNoColor)
      groups[own] = made;
    sets = std::move(later);
  }
}

NcclHandle NcclWorld::of(std::span<const uint32_t> members) const {
  if (members.size() == 1)
    return nullptr;
  auto found = groups.find({members.begin(), members.end()});
  if (found == groups.end())
    throw Failure{SHARDRT_INTERNAL, "the group was not connected"};
  return found->second;
}

void NcclWorld::enqueue(const shardrt_device_collective &call, StreamHandle stream) {
  std::lock_guard lock(mutex);
  if (!everybody)
    throw Failure{SHARDRT_ABORTED, "NCCL was given up"};
  NcclHandle handle = of({call.members, call.n_members});
  StreamScratch &memory = scratch.try_emplace(stream, device).first->second;
  NcclCall({*nccl, device, handle, memory, reduction, reduces,
            [this, handle] { settle(handle, "ncclGroupEnd"); }},
           call, stream)
      .enqueue();
}

void NcclWorld::poll() {
  // Who enqueues finds errors itself.
  std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock || !everybody)
    return;
  auto look = [&](NcclHandle handle) {
    NcclResult state = ncclOk;
    NcclResult asked = nccl->asyncError(handle, &state);
    nccl->check("ncclCommGetAsyncError", asked, handle);
    nccl->check("NCCL", state, handle);
  };
  look(everybody);
  for (auto &[members, handle] : groups)
    if (handle != everybody)
      look(handle);
}

void NcclWorld::abort() noexcept {
  std::lock_guard lock(mutex);
  for (auto &[members, handle] : groups)
    if (handle && handle != everybody)
      nccl->abort(handle);
  groups.clear();
  registrations.clear();
  if (unfinished)
    nccl->abort(std::exchange(unfinished, nullptr));
  if (everybody)
    nccl->abort(everybody);
  everybody = nullptr;
}

void NcclWorld::close() noexcept {
  try {
    std::lock_guard lock(mutex);
    if (!everybody)
      return;
    for (auto &[memory, list] : registrations)
      for (const Registered &one : list)
        nccl->forget(one.handle, one.registration);
    registrations.clear();
    for (auto &[members, handle] : groups)
      if (handle != everybody) {
        nccl->check("ncclCommFinalize", nccl->finalize(handle), handle);
        settle(handle, "ncclCommFinalize");
        NcclHandle gone = std::exchange(handle, nullptr);
        nccl->check("ncclCommDestroy", nccl->destroy(gone));
      }
    nccl->check("ncclCommFinalize", nccl->finalize(everybody), everybody);
    settle(everybody, "ncclCommFinalize");
    nccl->check("ncclCommDestroy", nccl->destroy(std::exchange(everybody, nullptr)));
    groups.clear();
  } catch (const Failure &) {
    abort();
  }
}

void NcclWorld::remember(void *memory, uint64_t bytes) {
  std::lock_guard lock(mutex);
  if (!everybody || !nccl->remember || !nccl->forget || bytes == 0)
    return;
  std::vector<Registered> &list = registrations[memory];
  auto add = [&](NcclHandle handle) {
    void *registration = nullptr;
    // It is a hint: what cannot be registered is communicated all the same.
    if (nccl->remember(handle, memory, size_t(bytes), &registration) == ncclOk && registration)
      list.push_back({handle, registration});
  };
  add(everybody);
  for (auto &[members, handle] : groups)
    if (handle != everybody)
      add(handle);
}

void NcclWorld::forget(void *memory) {
  std::lock_guard lock(mutex);
  auto found = registrations.find(memory);
  if (!everybody || found == registrations.end())
    return;
  for (const Registered &one : found->second)
    nccl->forget(one.handle, one.registration);
  registrations.erase(found);
}

namespace {

template <typename Function>
shardrt_status inWorld(void *communication, char *message, Function function) noexcept {
  return guarded(message, [&] {
    NcclWorld &world = NcclWorld::of(communication);
    Device::Current here(world.device);
    function(world);
  });
}

shardrt_status probe(void *device, shardrt_device_comm_facts *facts, char *message) {
  return on(device, message, [&](Device &opened) {
    // Ranks must wish the same, or they would not agree on who reduces.
    std::string wish = wishedReduce(), name = NcclLibrary::load(opened)->name();
    if (wish != "auto")
      name += " (SHARDRT_NCCL_REDUCE=" + wish + ")";
    std::snprintf(facts->library, sizeof facts->library, "%s", name.c_str());
  });
}

shardrt_status makeId(void *device, uint8_t *id, char *message) {
  return on(device, message, [&](Device &opened) {
    auto library = NcclLibrary::load(opened);
    NcclId made{};
    library->check("ncclGetUniqueId", library->makeId(&made));
    std::memcpy(id, made.bytes, sizeof made.bytes);
  });
}

shardrt_status open(void *device, const shardrt_device_comm_world *world, void **communication,
                    char *message) {
  return on(device, message,
            [&](Device &opened) { *communication = new NcclWorld(opened, *world); });
}

shardrt_device_communication makeCommunicationTable() {
  shardrt_device_communication table{};
  table.struct_bytes = sizeof table;
  table.version = SHARDRT_DEVICE_COMM_VERSION;
  table.probe = probe;
  table.make_id = makeId;
  table.open = open;
  table.connect = [](void *world, const shardrt_device_comm_group *groups, uint64_t count,
                     char *message) {
    return inWorld(world, message, [&](NcclWorld &here) { here.connect({groups, size_t(count)}); });
  };
  // What NCCL does not do as shardrt.h says, kernels of the plugin do.
  table.supports = [](void *, const shardrt_collective *, uint32_t) { return int32_t(1); };
  table.remember = [](void *world, void *memory, uint64_t bytes) {
    char unused[SHARDRT_MESSAGE_BYTES];
    inWorld(world, unused, [&](NcclWorld &here) { here.remember(memory, bytes); });
  };
  table.forget = [](void *world, void *memory) {
    char unused[SHARDRT_MESSAGE_BYTES];
    inWorld(world, unused, [&](NcclWorld &here) { here.forget(memory); });
  };
  table.enqueue = [](void *world, const shardrt_device_collective *call, void *stream,
                     char *message) {
    return inWorld(world, message, [&](NcclWorld &here) { here.enqueue(*call, streamOf(stream)); });
  };
  table.poll = [](void *world, char *message) {
    return inWorld(world, message, [](NcclWorld &here) { here.poll(); });
  };
  table.abort = [](void *world) {
    char unused[SHARDRT_MESSAGE_BYTES];
    inWorld(world, unused, [](NcclWorld &here) { here.abort(); });
  };
  table.close = [](void *world) {
    char unused[SHARDRT_MESSAGE_BYTES];
    inWorld(world, unused, [](NcclWorld &here) {
      here.close();
      delete &here; // its memory is released in the device's context
    });
  };
  return table;
}

} // namespace

const shardrt_device_communication *communicationTable() {
  static const shardrt_device_communication table = makeCommunicationTable();
  return &table;
}

} // namespace shardc::plugin::cuda
