// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What generated code may call (shardrt_program.h). Nothing is thrown through it: failures are kept
// in the model and reported by the run.
#include "runtime/gemm/Gemm.h"
#include "runtime/model/Model.h"

namespace shardc::rt {

struct Services {
  static Model &model(void *runtime) { return *static_cast<Model *>(runtime); }

  static int32_t record(Model &m, shardrt_status status, const char *message) {
    return m.failures.record([&] { return Failure(status, message); });
  }

  /// Runs `action`; turns what it throws into a recorded failure and a status.
  template <typename Action> static int32_t guarded(Model &m, Action action) noexcept {
    try {
      action();
      return SHARDRT_OK;
    } catch (const Failure &failure) {
      return record(m, failure.status, failure.what());
    } catch (const std::bad_alloc &) {
      return record(m, SHARDRT_OUT_OF_MEMORY, "out of memory");
    } catch (const std::exception &error) {
      return record(m, SHARDRT_INTERNAL, error.what());
    }
  }

  /// After a failure nothing is sent: what the program has computed since is of no use to others,
  /// who learn of the failure when the run ends. The wait reports it.
  static uint64_t start(void *runtime, const shardrt_collective *collective,
                        const shardrt_collective_tensor *tensors) {
    Model &m = model(runtime);
    if (m.failures.failed())
      return 0;
    return m.stream.start(*collective, m.groupOf(*collective), m.runNumber, tensors);
  }

  /// Waits are part of the compute thread's time line.
  template <typename Action>
  static int32_t waiting(Model &m, const char *name, const char *location, Action action) {
    if (!m.events.enabled)
      return guarded(m, action);
    Clock::time_point begin = Clock::now();
    m.closeOp(begin);
    int32_t result = guarded(m, action);
    m.events.add(SHARDRT_STREAM_WAIT, name, location, begin, Clock::now(), 0);
    return result;
  }

  static int32_t wait(void *runtime, uint64_t token) {
    Model &m = model(runtime);
    if (m.failures.failed())
      return m.failures.status();
    const shardrt_collective *c = m.stream.collectiveOf(token);
    return waiting(m, c ? c->name : "wait", c ? c->location : "", [&] { m.stream.wait(token); });
  }

  static int32_t collective(void *runtime, const shardrt_collective *c,
                            const shardrt_collective_tensor *tensors) {
    Model &m = model(runtime);
    if (m.failures.failed())
      return m.failures.status();
    return waiting(m, c->name, c->location,
                   [&] { m.stream.runNow(*c, m.groupOf(*c), m.runNumber, tensors); });
  }

  static void parallelFor(void *runtime, void (*body)(void *, int64_t, int64_t), void *arg,
                          int64_t n, int64_t grain) {
    model(runtime).pool.parallelFor(body, arg, n, grain);
  }

  static int32_t gemm(void *runtime, const shardrt_gemm *gemm) {
    Model &m = model(runtime);
    return guarded(m, [&] { runGemm(m.blasLibrary(), m.pool, *gemm); });
  }

  static int32_t fail(void *runtime, const char *location, const char *message) {
    Model &m = model(runtime);
    if (m.failures.failed())
      return m.failures.status();
    return guarded(m, [&] {
      std::string text = message ? message : "the program failed";
      if (location && *location)
        text = std::string(location) + ": " + text;
      throw Failure(SHARDRT_PROGRAM_ERROR, text);
    });
  }

  static int32_t failed(void *runtime) { return model(runtime).failures.status(); }

  static void *scratch(void *runtime, uint32_t slot, uint64_t bytes) {
    Model &m = model(runtime);
    std::vector<Buffer> &mine = m.scratch[size_t(ThreadPool::thread())];
    if (slot < mine.size() && mine[slot].size() >= bytes && mine[slot].data())
      return mine[slot].data();
    int32_t status = guarded(m, [&] {
      std::lock_guard<std::mutex> lock(m.scratchMutex);
      if (slot >= mine.size())
        mine.resize(slot + 1);
      mine[slot].reserve(m.allocator, std::max<size_t>(bytes, 1), SHARDRT_ARENA_ALIGNMENT,
                         "temporaries of a kernel");
    });
    return status == SHARDRT_OK ? mine[slot].data() : nullptr;
  }

  static void mark(void *runtime, uint32_t op) {
    Model &m = model(runtime);
    const shardrt_entry &entry = *m.running->program;
    const shardrt_op *next = op < entry.n_ops ? &entry.ops[op] : nullptr;
    if (m.events.enabled) {
      Clock::time_point now = Clock::now();
      m.closeOp(now);
      m.opBegin = now;
    }
    m.currentOp = next;
    m.communicator.notePosition(next);
  }
};

void Model::closeOp(Clock::time_point now) {
  if (currentOp && events.enabled)
    events.add(SHARDRT_STREAM_COMPUTE, currentOp->name, currentOp->location, opBegin, now, 0);
  currentOp = nullptr;
}

const shardrt_services serviceTable = {
    sizeof(shardrt_services), Services::start,  Services::wait, Services::collective,
    Services::parallelFor,    Services::gemm,   Services::fail, Services::failed,
    Services::mark,           Services::scratch};

} // namespace shardc::rt
