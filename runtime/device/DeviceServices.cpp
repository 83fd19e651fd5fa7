// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the host code of a program for a device may call (shardrt_program.h). Nothing is thrown
// through it: failures are recorded and reported by the call.
#include "runtime/device/DeviceExecutor.h"
#include "runtime/executor/CallOp.h"

#include <algorithm>

namespace shardc::rt {

struct DeviceServices {
  static DeviceExecutor &executor(void *runtime) { return *static_cast<DeviceExecutor *>(runtime); }

  /// Runs `action`, unless the program has failed; turns what it throws into a recorded failure and
  /// a status.
  template <typename Action> static int32_t guarded(DeviceExecutor &x, Action action) noexcept {
    if (x.failures.failed())
      return x.failures.status();
    try {
      action();
      return SHARDRT_OK;
    } catch (const Failure &failure) {
      return x.failures.record([&] { return failure; });
    } catch (const std::exception &error) {
      return x.failures.record([&] { return Failure(SHARDRT_INTERNAL, error.what()); });
    }
  }

  /// The same for what waits for collectives: a kernel's failure that stopped one is what is told.
  template <typename Action> static int32_t waiting(DeviceExecutor &x, Action action) noexcept {
    return guarded(x, [&] {
      try {
        action();
      } catch (const Failure &) {
        if (uint64_t word = x.collectives().failedWord())
          x.recordWord(word, x.launches);
        throw;
      }
    });
  }

  /// Of exchanges, in front of them on the stream.
  static void clearRest(DeviceExecutor &x, const shardrt_collective &collective,
                        const shardrt_collective_tensor *tensors) {
    const Group *group = x.groups[collective.group];
    if (collective.kind != SHARDRT_ALL_TO_ALL || !group)
      return;
    for (uint32_t i = 0; i < collective.n_operands; ++i) {
      ExchangeRest rest = restOfExchange(collective, i, tensors[i], group->size());
      if (rest.bytes == 0)
        continue;
      x.noteWork(1);
      x.device->on([&](auto &table, void *device, char *message) {
        return table.fill(device, rest.begin, 0, rest.bytes, x.compute, message);
      });
    }
  }

  static uint64_t start(void *runtime, const shardrt_collective *collective,
                        const shardrt_collective_tensor *tensors) {
    DeviceExecutor &x = executor(runtime);
    uint64_t token = noToken;
    waiting(x, [&] {
      clearRest(x, *collective, tensors);
      if (!runAlone(x, *collective, tensors) && !needsEagerRun(x, collective, tensors))
        token =
            x.collectives().start(*collective, x.groups[collective->group], x.runNumber, tensors);
    });
    return token;
  }

  static int32_t wait(void *runtime, uint64_t token) {
    DeviceExecutor &x = executor(runtime);
    return waiting(x, [&] {
      if (token != noToken && !needsEagerRun(x))
        x.collectives().wait(token);
    });
  }

  static int32_t collective(void *runtime, const shardrt_collective *collective,
                            const shardrt_collective_tensor *tensors) {
    DeviceExecutor &x = executor(runtime);
    return waiting(x, [&] {
      clearRest(x, *collective, tensors);
      if (!runAlone(x, *collective, tensors) && !needsEagerRun(x, collective, tensors))
        x.collectives().runNow(*collective, x.groups[collective->group], x.runNumber, tensors);
    });
  }

  /// Of what is done already.
  static constexpr uint64_t noToken = UINT64_MAX;

  /// A group of one rank, or of none that this one is in, needs nobody: results are operands.
  static bool runAlone(DeviceExecutor &x, const shardrt_collective &collective,
                       const shardrt_collective_tensor *tensors) {
    Group *group = x.groups[collective.group];
    if (!group || group->size() > 1)
      return !group;
    CollectiveCall call;
    if (std::string problem = call.assign(collective, *group, x.runNumber, tensors);
        !problem.empty())
      throw Failure(SHARDRT_INTERNAL, describe(collective) + ": " + problem);
    bool isCleared = collective.kind == SHARDRT_PERMUTE && permuteSource(collective, 0) < 0;
    for (const CallOperand &operand : call.operands) {
      uint64_t bytes = uint64_t(operand.outElements(0, collective) * operand.elementBytes);
      if (bytes == 0 || (!isCleared && operand.in == operand.out))
        continue;
      x.noteWork(1);
      x.device->on([&](auto &table, void *device, char *message) {
        return isCleared ? table.fill(device, operand.out, 0, bytes, x.compute, message)
                         : table.copy(device, operand.out, operand.in, bytes, x.compute, message);
      });
    }
    return true;
  }

  /// A collective that a graph cannot have ends the capture.
  static bool needsEagerRun(DeviceExecutor &x, const shardrt_collective *collective = nullptr,
                            const shardrt_collective_tensor *tensors = nullptr) {
    Group *group = collective ? x.groups[collective->group] : nullptr;
    if (x.capturing && group && !x.collectives().capturable(*collective, *group, tensors))
      x.captureFailed = true;
    return x.captureFailed;
  }

  static void parallelFor(void *, void (*body)(void *, int64_t, int64_t), void *arg, int64_t n,
                          int64_t) {
    if (n > 0)
      body(arg, 0, n);
  }

  static int32_t gemm(void *runtime, const shardrt_gemm *gemm) {
    DeviceExecutor &x = executor(runtime);
    return guarded(x, [&] {
      constexpr size_t pieces = 12; // two products, each with copies of its operands
      x.noteWork(pieces);
      x.device->multiply(*gemm, x.compute);
    });
  }

  static int32_t fail(void *runtime, const char *location, const char *message) {
    DeviceExecutor &x = executor(runtime);
    return guarded(x, [&] {
      std::string text = message ? message : "the program failed";
      if (location && *location)
        text = std::string(location) + ": " + text;
      throw Failure(SHARDRT_PROGRAM_ERROR, text);
    });
  }

  static void mark(void *runtime, uint32_t op) {
    DeviceExecutor &x = executor(runtime);
    const shardrt_op *next = x.running && op < x.running->n_ops ? &x.running->ops[op] : nullptr;
    guarded(x, [&] {
      x.closeOp();
      if (x.timeline.enabled() && next)
        x.opMark = x.timeline.mark(x.compute);
    });
    x.currentOp = x.lastOp = next;
    x.communicator.notePosition(next);
  }

  static void *scratch(void *runtime, uint32_t slot, uint64_t bytes) {
    DeviceExecutor &x = executor(runtime);
    if (slot < x.scratch.size() && x.scratch[slot].size() >= bytes && x.scratch[slot].data())
      return x.scratch[slot].data();
    guarded(x, [&] {
      if (x.capturing) { // nothing can be allocated now, and nothing of this runs
        x.captureFailed = true;
        return;
      }
      if (slot >= x.scratch.size())
        x.scratch.resize(slot + 1);
      Buffer larger(x.memory().allocator(), std::max<size_t>(bytes, 1), SHARDRT_ARENA_ALIGNMENT,
                    "temporaries of a kernel");
      // Kernels that are on the stream may use the old one.
      std::swap(x.scratch[slot], larger);
      x.retired.push_back(std::move(larger));
      ++x.scratchVersion;
    });
    return x.failures.failed() || x.captureFailed ? nullptr : x.scratch[slot].data();
  }

  /// What kernels meet is not known yet.
  static int32_t commit(void *runtime) {
    DeviceExecutor &x = executor(runtime);
    if (!x.failures.failed())
      x.noteCommit();
    return x.failures.status();
  }

  static int32_t readSizes(void *runtime, int64_t *sizes, const void *from, int64_t count,
                           int64_t atMost) {
    DeviceExecutor &x = executor(runtime);
    const std::span<int64_t> wanted(sizes, size_t(count));
    int32_t status = waiting(x, [&] {
      if (!x.capturing)
        return x.readSizes(wanted, from, atMost);
      x.captureFailed = true; // nothing of this runs
      std::ranges::fill(wanted, 0);
    });
    return status == SHARDRT_OK ? x.failures.status() : status;
  }

  /// What it puts on the stream may be anything: nothing of a step with such a call is captured.
  static int32_t callOp(void *runtime, shardrt_op_call *call, shardrt_op_function function) {
    DeviceExecutor &x = executor(runtime);
    if (x.failures.failed())
      return x.failures.status();
    if (x.capturing) {
      x.captureFailed = true;
      return SHARDRT_OK;
    }
    x.noteWork(1);
    return rt::callOp(*call, function, deviceServices, runtime, /*onDevice=*/true, x.compute);
  }

  static int32_t launch(void *runtime, const shardrt_launch *launch) {
    DeviceExecutor &x = executor(runtime);
    return guarded(x, [&] {
      if (launch->kernel >= x.kernels.size())
        throw Failure(SHARDRT_INTERNAL, "the program launches kernel " +
                                            std::to_string(launch->kernel) + " of " +
                                            std::to_string(x.kernels.size()));
      if (std::ranges::count(launch->grid, 0u) > 0)
        return;
      const shardrt_kernel &kernel = x.program.kernels[launch->kernel];
      const uint32_t number = uint32_t(x.launches.size());
      const void *const word = x.errorWord.data();
      x.noteWork(1);
      x.launches.push_back({launch->location, launch->kernel, x.currentOp});
      x.params.assign({&word, &number});
      x.params.insert(x.params.end(), launch->params, launch->params + kernel.n_params);
      x.device->on([&](auto &table, void *device, char *message) {
        return table.launch(device, x.kernels[launch->kernel], launch->grid, kernel.block,
                            kernel.shared_bytes, x.params.data(), x.compute, message);
      });
    });
  }
};

const shardrt_services deviceServices = {
    sizeof(shardrt_services),   DeviceServices::start,       DeviceServices::wait,
    DeviceServices::collective, DeviceServices::parallelFor, DeviceServices::gemm,
    DeviceServices::fail,       DeviceServices::mark,        DeviceServices::scratch,
    DeviceServices::launch,     DeviceServices::commit,      DeviceServices::readSizes,
    DeviceServices::callOp};

} // namespace shardc::rt
