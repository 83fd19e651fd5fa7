// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What generated code may call (shardrt_program.h). Nothing is thrown through it: failures are
// recorded and reported by the call.
#include "runtime/executor/CallOp.h"
#include "runtime/gemm/Gemm.h"
#include "runtime/host/HostExecutor.h"

#include <cstring>

namespace shardc::rt {

struct HostServices {
  static HostExecutor &executor(void *runtime) { return *static_cast<HostExecutor *>(runtime); }

  static int32_t record(HostExecutor &x, shardrt_status status, const char *message) {
    return x.failures.record([&] { return Failure(status, message); });
  }

  /// Runs `action`; turns what it throws into a recorded failure and a status.
  template <typename Action> static int32_t guarded(HostExecutor &x, Action action) noexcept {
    try {
      action();
      return SHARDRT_OK;
    } catch (const Failure &failure) {
      return record(x, failure.status, failure.what());
    } catch (const std::bad_alloc &) {
      return record(x, SHARDRT_OUT_OF_MEMORY, "out of memory");
    } catch (const std::exception &error) {
      return record(x, SHARDRT_INTERNAL, error.what());
    }
  }

  /// After a failure nothing is sent: what the program has computed since is of no use to others,
  /// who learn of the failure when the run ends. The wait reports it.
  static uint64_t start(void *runtime, const shardrt_collective *collective,
                        const shardrt_collective_tensor *tensors) {
    HostExecutor &x = executor(runtime);
    if (x.failures.failed() || clearRest(x, *collective, tensors) != SHARDRT_OK)
      return 0;
    return x.stream.start(*collective, x.groupOf(*collective), x.runNumber, tensors);
  }

  /// Of exchanges, before what arrives is put in front of it.
  static int32_t clearRest(HostExecutor &x, const shardrt_collective &collective,
                           const shardrt_collective_tensor *tensors) {
    if (collective.kind != SHARDRT_ALL_TO_ALL)
      return SHARDRT_OK;
    const Group *group = x.groupOf(collective);
    return guarded(x, [&] {
      for (uint32_t i = 0; group && i < collective.n_operands; ++i)
        if (ExchangeRest rest = restOfExchange(collective, i, tensors[i], group->size());
            rest.bytes)
          std::memset(rest.begin, 0, rest.bytes);
    });
  }

  /// Waits are part of the compute thread's time line.
  template <typename Action>
  static int32_t waiting(HostExecutor &x, const char *name, const char *location, Action action) {
    if (!x.events.enabled)
      return guarded(x, action);
    Clock::time_point begin = Clock::now();
    x.closeOp(begin);
    int32_t result = guarded(x, action);
    x.events.add(SHARDRT_STREAM_WAIT, name, location, begin, Clock::now(), 0);
    return result;
  }

  static int32_t wait(void *runtime, uint64_t token) {
    HostExecutor &x = executor(runtime);
    if (x.failures.failed())
      return x.failures.status();
    const shardrt_collective *c = x.stream.collectiveOf(token);
    return waiting(x, c ? c->name : "wait", c ? c->location : "", [&] { x.stream.wait(token); });
  }

  static int32_t collective(void *runtime, const shardrt_collective *c,
                            const shardrt_collective_tensor *tensors) {
    HostExecutor &x = executor(runtime);
    if (x.failures.failed())
      return x.failures.status();
    if (int32_t status = clearRest(x, *c, tensors))
      return status;
    return waiting(x, c->name, c->location,
                   [&] { x.stream.runNow(*c, x.groupOf(*c), x.runNumber, tensors); });
  }

  static void parallelFor(void *runtime, void (*body)(void *, int64_t, int64_t), void *arg,
                          int64_t n, int64_t grain) {
    executor(runtime).pool.parallelFor(body, arg, n, grain);
  }

  static int32_t gemm(void *runtime, const shardrt_gemm *gemm) {
    HostExecutor &x = executor(runtime);
    return guarded(x, [&] { runGemm(x.blasLibrary(), x.pool, *gemm); });
  }

  static int32_t fail(void *runtime, const char *location, const char *message) {
    HostExecutor &x = executor(runtime);
    if (x.failures.failed())
      return x.failures.status();
    return guarded(x, [&] {
      std::string text = message ? message : "the program failed";
      if (location && *location)
        text = std::string(location) + ": " + text;
      throw Failure(SHARDRT_PROGRAM_ERROR, text);
    });
  }

  static void *scratch(void *runtime, uint32_t slot, uint64_t bytes) {
    HostExecutor &x = executor(runtime);
    std::vector<Buffer> &mine = x.scratch[size_t(ThreadPool::thread())];
    if (slot < mine.size() && mine[slot].size() >= bytes && mine[slot].data())
      return mine[slot].data();
    int32_t status = guarded(x, [&] {
      std::lock_guard<std::mutex> lock(x.scratchMutex);
      if (slot >= mine.size())
        mine.resize(slot + 1);
      mine[slot].reserve(x.memory().allocator(), std::max<size_t>(bytes, 1),
                         SHARDRT_ARENA_ALIGNMENT, "temporaries of a kernel");
    });
    return status == SHARDRT_OK ? mine[slot].data() : nullptr;
  }

  static int32_t launch(void *runtime, const shardrt_launch *) {
    return fail(runtime, nullptr, "the program launches a kernel of a device on the host");
  }

  static int32_t commit(void *runtime) {
    HostExecutor &x = executor(runtime);
    if (!x.failures.failed())
      x.noteCommit();
    return x.failures.status();
  }

  static int32_t readSizes(void *runtime, int64_t *sizes, const void *from, int64_t count,
                           int64_t atMost) {
    HostExecutor &x = executor(runtime);
    if (x.failures.failed())
      return x.failures.status();
    return guarded(x, [&] {
      std::memcpy(sizes, from, size_t(count) * sizeof(int64_t));
      checkSizes({sizes, size_t(count)}, atMost);
    });
  }

  static int32_t callOp(void *runtime, shardrt_op_call *call, shardrt_op_function function) {
    HostExecutor &x = executor(runtime);
    if (x.failures.failed())
      return x.failures.status();
    return rt::callOp(*call, function, hostServices, runtime, /*onDevice=*/false, nullptr);
  }

  static void mark(void *runtime, uint32_t op) {
    HostExecutor &x = executor(runtime);
    const shardrt_entry &entry = *x.running;
    const shardrt_op *next = op < entry.n_ops ? &entry.ops[op] : nullptr;
    if (x.events.enabled) {
      Clock::time_point now = Clock::now();
      x.closeOp(now);
      x.opBegin = now;
    }
    x.currentOp = x.lastOp = next;
    x.communicator.notePosition(next);
  }
};

void HostExecutor::closeOp(Clock::time_point now) {
  if (currentOp && events.enabled)
    events.add(SHARDRT_STREAM_COMPUTE, currentOp->name, currentOp->location, opBegin, now, 0);
  currentOp = nullptr;
}

const shardrt_services hostServices = {
    sizeof(shardrt_services),  HostServices::start,  HostServices::wait,   HostServices::collective,
    HostServices::parallelFor, HostServices::gemm,   HostServices::fail,   HostServices::mark,
    HostServices::scratch,     HostServices::launch, HostServices::commit, HostServices::readSizes,
    HostServices::callOp};

} // namespace shardc::rt
