// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of emulated NCCL: checks of arguments, groups of calls, and the life of
// communicators.
#include "tools/cuda-emulator/OfThread.h"
#include "tools/cuda-emulator/Settings.h"
#include "tools/cuda-emulator/nccl/Communicator.h"
#include "tools/cuda-emulator/nccl/Reduce.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

using namespace shardc::emulator;

namespace {

constexpr int emulatedNcclVersion = 22803;
constexpr unsigned configMagic = 0xcafebeef;
constexpr int noColor = -1;
constexpr int unset = -2147483647 - 1;

// They are used until the process ends: none is destroyed.
std::mutex &registryMutex = *new std::mutex;
auto &registry = *new std::map<ncclComm_t, std::shared_ptr<Communicator>>;
/// Memory that is registered with a communicator.
auto &registered = *new std::map<ncclComm_t, std::map<void *, size_t>>;

/// With the lock.
void countHeld() {
  uint64_t bytes = 0;
  for (const auto &[comm, blocks] : registered)
    for (const auto &[memory, size] : blocks)
      bytes += size;
  held().communicators = registry.size();
  held().registeredBytes = bytes;
}

ncclComm_t add(std::shared_ptr<Communicator> communicator) {
  std::lock_guard lock(registryMutex);
  auto handle = reinterpret_cast<ncclComm_t>(communicator.get());
  registry[handle] = std::move(communicator);
  countHeld();
  return handle;
}
void drop(ncclComm_t handle) {
  std::lock_guard lock(registryMutex);
  registry.erase(handle);
  registered.erase(handle);
  countHeld();
}

ncclResult_t refuse(ncclResult_t result, const char *function, const std::string &why) {
  setLastError(std::string(function) + ": " + why);
  return result;
}

/// Calls of this thread since ncclGroupStart.
struct Group {
  struct Call {
    ncclComm_t handle;
    CUstream stream;
    CommWork work;
  };
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<Call> calls;

  static void reportMissingEnd(int device, const char *where) {
    reportError(device, CUDA_ERROR_LAUNCH_FAILED,
                std::string("ncclGroupStart without ncclGroupEnd, and ") + where);
  }
};
Group &groupOfThread() { return ofThread<Group>(); }

/// Looks at the group when the thread ends, or when it ends the process.
struct EndOfThread {
  ~EndOfThread() {
    if (groupOfThread().depth > 0)
      Group::reportMissingEnd(0, "the thread ends");
  }
};

ncclResult_t enqueueAll(std::vector<Group::Call> calls) {
  std::vector<bool> done(calls.size(), false);
  for (size_t i = 0; i < calls.size(); ++i) {
    if (done[i])
      continue;
    std::vector<CommWork> together;
    for (size_t k = i; k < calls.size(); ++k)
      if (calls[k].handle == calls[i].handle && calls[k].stream == calls[i].stream) {
        together.push_back(calls[k].work);
        done[k] = true;
      }
    std::shared_ptr<Communicator> communicator = communicatorOf(calls[i].handle);
    if (!communicator)
      return refuse(ncclInvalidArgument, "ncclGroupEnd", "a communicator was destroyed meanwhile");
    if (ncclResult_t result = communicator->enqueue(calls[i].stream, std::move(together)))
      return result;
  }
  return ncclSuccess;
}

/// A call of a collective, or of a send or receive.
ncclResult_t put(ncclComm_t handle, CUstream stream, const CommWork &work) {
  const char *function = nameOf(work.call);
  auto wrong = [&](const std::string &why) {
    ncclResult_t result = refuse(ncclInvalidArgument, function, why);
    if (groupOfThread().depth > 0)
      groupOfThread().error = result;
    return result;
  };
  std::shared_ptr<Communicator> c = communicatorOf(handle);
  if (!c)
    return wrong("there is no such communicator");
  if (ncclResult_t result = c->usable(function)) {
    if (groupOfThread().depth > 0)
      groupOfThread().error = result;
    return result;
  }
  if (ncclTypeBytes(work.type) == 0)
    return wrong("type " + std::to_string(work.type) + " is unknown");
  if (work.reduction < ncclSum || work.reduction > ncclAvg)
    return wrong("reduction " + std::to_string(work.reduction) + " is unknown");
  if (work.peer < 0 || work.peer >= c->size)
    return wrong("rank " + std::to_string(work.peer) + " is none of " + std::to_string(c->size));
  bool gives =
      work.call != CommCall::Receive && (work.call != CommCall::Broadcast || c->rank == work.peer);
  bool gets =
      work.call != CommCall::Send && (work.call != CommCall::Reduce || c->rank == work.peer);
  if (work.count > 0 && gives && !work.send)
    return wrong("the memory to send is null");
  if (work.count > 0 && gets && !work.receive)
    return wrong("the memory to receive into is null");
  const auto *send = static_cast<const char *>(work.send);
  const auto *receive = static_cast<const char *>(work.receive);
  const size_t bytes = work.bytes(), all = bytes * size_t(c->size);
  auto overlap = [&](size_t sent, size_t received, const char *inPlace) {
    return send != inPlace && send < receive + received && receive < send + sent;
  };
  if (work.count > 0 &&
      ((work.call == CommCall::AllReduce && overlap(bytes, bytes, receive)) ||
       (work.call == CommCall::AllGather &&
        overlap(bytes, all, receive + size_t(c->rank) * bytes)) ||
       (work.call == CommCall::ReduceScatter && receive != send + size_t(c->rank) * bytes &&
        overlap(all, bytes, nullptr))))
    return wrong("what is sent overlaps what is received, and not in the way that is in place");
  if (deviceOf(stream) != c->device)
    return wrong("the stream is of device " + std::to_string(deviceOf(stream)) +
                 ", the communicator of device " + std::to_string(c->device));
  if (groupOfThread().depth > 0) {
    groupOfThread().calls.push_back({handle, stream, work});
    return ncclSuccess;
  }
  return enqueueAll({{handle, stream, work}});
}

bool isBlocking(const ncclConfig_t *config) {
  return !config || config->blocking == unset || config->blocking != 0;
}

ncclResult_t checkConfig(const char *function, const ncclConfig_t *config) {
  if (config && (config->size < sizeof(ncclConfig_t) || config->magic != configMagic))
    return refuse(ncclInvalidArgument, function, "the configuration was not initialised");
  return ncclSuccess;
}

/// A communicator that blocks is made when the function returns.
ncclResult_t await(Communicator &communicator) {
  if (!communicator.blocking)
    return ncclInProgress;
  ncclResult_t state;
  while ((state = communicator.state()) == ncclInProgress)
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  return state;
}

} // namespace

std::shared_ptr<Communicator> shardc::emulator::communicatorOf(ncclComm_t handle) {
  std::lock_guard lock(registryMutex);
  auto found = registry.find(handle);
  return found == registry.end() ? nullptr : found->second;
}

extern "C" {

ncclResult_t ncclGetVersion(int *version) {
  if (!version)
    return refuse(ncclInvalidArgument, "ncclGetVersion", "the address is null");
  const char *other = std::getenv("CUDA_EMULATED_NCCL_VERSION");
  *version = other ? std::atoi(other) : emulatedNcclVersion;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  if (!id)
    return refuse(ncclInvalidArgument, "ncclGetUniqueId", "the address is null");
  std::memset(id, 0, sizeof *id);
  std::string name = Mailbox::newName();
  std::memcpy(id->internal, name.data(), name.size());
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  static const char *const texts[] = {"no error",
                                      "unhandled cuda error",
                                      "unhandled system error",
                                      "internal error",
                                      "invalid argument",
                                      "invalid usage",
                                      "remote process exited or there was a network error",
                                      "NCCL operation in progress"};
  return result >= 0 && result <= ncclInProgress ? texts[result] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t) { return lastErrorText(); }

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  constexpr const char *function = "ncclCommInitRankConfig";
  if (ncclResult_t wrong = checkConfig(function, config))
    return wrong;
  id.internal[sizeof id.internal - 1] = '\0';
  if (!comm || ranks < 1 || rank < 0 || rank >= ranks || id.internal[0] != '/')
    return refuse(ncclInvalidArgument, function,
                  "rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  CUdevice device = -1;
  if (cuCtxGetDevice(&device) != CUDA_SUCCESS)
    return refuse(ncclUnhandledCudaError, function, "the thread has no device");
  try {
    auto made =
        std::make_shared<Communicator>(std::make_shared<NcclRoot>(id.internal, rank), "the world",
                                       rank, ranks, device, isBlocking(config));
    made->beginWorld();
    *comm = add(made);
    return await(*made);
  } catch (const std::runtime_error &error) {
    return refuse(ncclSystemError, function, error.what());
  }
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(comm, ranks, id, rank, nullptr);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made,
                           ncclConfig_t *config) {
  constexpr const char *function = "ncclCommSplit";
  if (ncclResult_t wrong = checkConfig(function, config))
    return wrong;
  std::shared_ptr<Communicator> parent = communicatorOf(comm);
  if (!parent || !made || color < noColor)
    return refuse(ncclInvalidArgument, function, "color " + std::to_string(color));
  if (ncclResult_t result = parent->usable(function))
    return result;
  const bool blocking = config ? isBlocking(config) : parent->blocking;
  const uint64_t number = parent->nextSplit();
  try {
    auto child = std::make_shared<Communicator>(
        parent->root,
        parent->describe().substr(parent->describe().find(" of ") + 4) + ".split" +
            std::to_string(number) + "." + std::to_string(color),
        0, 0, parent->device, blocking);
    child->beginSplit(parent, number, color, key);
    *made = nullptr;
    parent->markCalled();
    if (color == noColor)
      return parent->blocking ? ncclSuccess : ncclInProgress;
    *made = add(child);
    return await(*child);
  } catch (const std::runtime_error &error) {
    return refuse(ncclSystemError, function, error.what());
  }
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  std::shared_ptr<Communicator> c = communicatorOf(comm);
  if (!c || !error)
    return refuse(ncclInvalidArgument, "ncclCommGetAsyncError", "there is no such communicator");
  *error = c->state();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  std::shared_ptr<Communicator> c = communicatorOf(comm);
  if (!c)
    return refuse(ncclInvalidArgument, "ncclCommFinalize", "there is no such communicator");
  if (groupOfThread().depth > 0)
    Group::reportMissingEnd(c->device, "ncclCommFinalize is called");
  // What was sent stays until it is taken, so that there is nothing to wait for.
  if (ncclResult_t result = c->usable("ncclCommFinalize"))
    return result;
  c->markCalled();
  return c->blocking ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  std::shared_ptr<Communicator> c = communicatorOf(comm);
  if (!c)
    return refuse(ncclInvalidArgument, "ncclCommDestroy", "there is no such communicator");
  if (groupOfThread().depth > 0)
    Group::reportMissingEnd(c->device, "ncclCommDestroy is called");
  drop(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  std::shared_ptr<Communicator> c = communicatorOf(comm);
  if (!c)
    return refuse(ncclInvalidArgument, "ncclCommAbort", "there is no such communicator");
  c->abort();
  drop(comm);
  wake();
  return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int *count) {
  std::shared_ptr<Communicator> c = communicatorOf(comm);
  if (!c || !count)
    return refuse(ncclInvalidArgument, "ncclCommCount", "there is no such communicator");
  *count = c->size;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank) {
  std::shared_ptr<Communicator> c = communicatorOf(comm);
  if (!c || !rank)
    return refuse(ncclInvalidArgument, "ncclCommUserRank", "there is no such communicator");
  *rank = c->rank;
  return ncclSuccess;
}

ncclResult_t ncclCommRegister(ncclComm_t comm, void *memory, size_t bytes, void **handle) {
  if (!communicatorOf(comm) || !memory || bytes == 0 || !handle)
    return refuse(ncclInvalidArgument, "ncclCommRegister", "memory or communicator is null");
  // It maps the memory for other ranks: it must be the device's.
  unsigned kind = 0;
  if (cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CUdeviceptr(memory)) ||
      kind != CU_MEMORYTYPE_DEVICE)
    return refuse(ncclInvalidUsage, "ncclCommRegister", "the memory is none of a device");
  std::lock_guard lock(registryMutex);
  registered[comm][memory] = bytes;
  countHeld();
  *handle = memory;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(ncclComm_t comm, void *handle) {
  if (!communicatorOf(comm) || !handle)
    return refuse(ncclInvalidArgument, "ncclCommDeregister", "handle or communicator is null");
  std::lock_guard lock(registryMutex);
  if (registered[comm].erase(handle) == 0)
    return refuse(ncclInvalidArgument, "ncclCommDeregister", "the memory is not registered");
  countHeld();
  return ncclSuccess;
}

ncclResult_t ncclGroupStart(void) {
  static thread_local EndOfThread end;
  static_cast<void>(end);
  ++groupOfThread().depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
  if (groupOfThread().depth == 0)
    return refuse(ncclInvalidUsage, "ncclGroupEnd", "there was no ncclGroupStart");
  if (--groupOfThread().depth > 0)
    return ncclSuccess;
  std::vector<Group::Call> calls = std::move(groupOfThread().calls);
  ncclResult_t error = std::exchange(groupOfThread().error, ncclSuccess);
  groupOfThread().calls.clear();
  return error ? error : enqueueAll(std::move(calls));
}

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, int type, int reduction,
                           ncclComm_t comm, CUstream stream) {
  return put(comm, stream, {CommCall::AllReduce, send, receive, count, type, reduction, 0});
}
ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, int type, int root,
                           ncclComm_t comm, CUstream stream) {
  return put(comm, stream, {CommCall::Broadcast, send, receive, count, type, 0, root});
}
ncclResult_t ncclReduce(const void *send, void *receive, size_t count, int type, int reduction,
                        int root, ncclComm_t comm, CUstream stream) {
  return put(comm, stream, {CommCall::Reduce, send, receive, count, type, reduction, root});
}
ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, int type, ncclComm_t comm,
                           CUstream stream) {
  return put(comm, stream, {CommCall::AllGather, send, receive, count, type, 0, 0});
}
ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count, int type,
                               int reduction, ncclComm_t comm, CUstream stream) {
  return put(comm, stream, {CommCall::ReduceScatter, send, receive, count, type, reduction, 0});
}
ncclResult_t ncclSend(const void *send, size_t count, int type, int peer, ncclComm_t comm,
                      CUstream stream) {
  return put(comm, stream, {CommCall::Send, send, nullptr, count, type, 0, peer});
}
ncclResult_t ncclRecv(void *receive, size_t count, int type, int peer, ncclComm_t comm,
                      CUstream stream) {
  return put(comm, stream, {CommCall::Receive, nullptr, receive, count, type, 0, peer});
}

} // extern "C"
