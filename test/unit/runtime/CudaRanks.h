// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Worlds whose ranks have an emulated device each, or share one, and communicate by emulated NCCL
// or over peer access. On a real device, which all share, ranks are threads that communicate by own
// kernels, or processes: each is a host of its own to NCCL, which refuses two ranks on a device of
// one host before 2.30.
#ifndef SHARDC_TEST_UNIT_RUNTIME_CUDARANKS_H
#define SHARDC_TEST_UNIT_RUNTIME_CUDARANKS_H

#include "runtime/device/DeviceTransport.h"
#include "test/unit/runtime/CudaDevice.h"
#include "test/unit/runtime/Processes.h"

namespace test {

/// A rank's end of another world, whose collectives run on a device: operands are copied there, and
/// results back, on the stream that the collective is on.
class CudaEnd final : public shardc::rt::Communicator, private shardc::rt::HostTransport {
public:
  CudaEnd(shardc::rt::Communicator &inner, int ordinal) : inner(inner), device(ordinal) {}

  uint32_t worldSize() const override { return inner.worldSize(); }
  uint32_t rank() const override { return inner.rank(); }
  shardc::rt::Group &group(std::span<const uint32_t> members) override {
    return inner.group(members);
  }
  std::vector<std::string> exchange(const shardc::rt::Topic &topic, std::string_view mine,
                                    shardc::rt::Clock::time_point deadline) override {
    return inner.exchange(topic, mine, deadline);
  }
  void connect(std::span<const shardrt_group> groups,
               shardc::rt::Clock::time_point deadline) override {
    inner.connect(groups, deadline);
    if (realDevice() && betweenProcesses())
      setenv("NCCL_HOSTID", ("shardc-" + std::to_string(rank())).c_str(), 1);
    transport = shardc::rt::connectDevices(inner, device.table(), device.device.handle(), groups,
                                           deadline, whyNot);
  }
  bool betweenProcesses() const override { return inner.betweenProcesses(); }
  bool givenUp() const override { return inner.givenUp(); }
  std::string absent(const shardc::rt::Group &group, uint64_t run) override {
    return inner.absent(group, run);
  }
  shardc::rt::HostTransport *hostTransport() override { return this; }
  void abort(shardrt_status status, const std::string &reason) noexcept override {
    inner.abort(status, reason);
  }
  void refuse(uint64_t run, const std::string &reason) noexcept override {
    inner.refuse(run, reason);
  }
  void leave() noexcept override { inner.leave(); }
  void notePosition(const shardrt_op *op) noexcept override { inner.notePosition(op); }

  shardc::rt::Communicator &inner;
  CudaDevice device;
  /// Null, and why: it goes through the host.
  std::unique_ptr<shardc::rt::StreamTransport> transport;
  std::string whyNot;
  uint64_t enqueued = 0;

private:
  shardc::rt::Clock::time_point run(const shardc::rt::CollectiveCall &call,
                                    shardc::rt::Clock::time_point deadline) override {
    using namespace shardc::rt;
    const uint32_t position = call.group->position;
    if (!transport || !transport->takes(*call.collective, call.group->size()))
      return inner.hostTransport()->run(call, deadline);
    CollectiveCall there = call;
    struct Result {
      void *host;
      const void *there;
      size_t bytes;
    };
    std::vector<Result> results;
    for (CallOperand &o : there.operands) {
      const auto in = size_t(o.inElements(position) * o.elementBytes);
      const auto out = size_t(o.outElements(position, *call.collective) * o.elementBytes);
      void *host = o.out;
      bool same = o.in == o.out;
      o.in = device.put(o.in, in);
      o.out = same ? const_cast<void *>(o.in) : device.put(nullptr, out);
      results.push_back({host, o.out, out});
    }
    void *stream = device.stream.get();
    try {
      transport->enqueue(there, stream, deadline);
      ++enqueued;
      DeviceObject done = device.device.makeEvent();
      device.device.record(done, stream);
      while (!device.device.done(done)) {
        transport->poll(there, deadline);
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
      transport->poll(there, Clock::time_point::max());
    } catch (const Failure &) {
      transport->giveUp();
      device.device.synchronizeStream(stream); // it comes to its end
      device.releaseAll();
      throw;
    }
    for (const Result &result : results)
      device.get(result.host, result.there, result.bytes);
    device.releaseAll();
    return Clock::now();
  }
};

/// The same ranks, each with one of so many devices, whose streams run in this order. `wish` says
/// how they communicate (SHARDRT_DEVICE_COLLECTIVES). `real`: also on a real device.
inline WorldKind cudaWorlds(const char *name, const WorldKind &inner, const char *order = "eager",
                            const char *wish = "device", int devices = 8, bool real = false) {
  WorldKind kind{name, {}};
  kind.slow = true;
  kind.runs = [=](uint32_t world, const WorldKind::Body &body) {
    if (!hasDevice() || (realDevice() && !real)) {
      [] { GTEST_SKIP() << "the emulated device was not built, or it is not asked for"; }();
      throw ::testing::AssertionException(
          ::testing::TestPartResult(::testing::TestPartResult::kSuccess, nullptr, 0, ""));
    }
    EnvironmentVariable wished("SHARDRT_DEVICE_COLLECTIVES", wish);
    CudaDevice::clearReports();
    CudaDevice::setOrder(order); // also of processes that are forked from this one
    return inner.run(world, [&](shardc::rt::Communicator &end) {
      {
        CudaEnd there(end, int(end.rank()) % devices);
        body(there);
      }
      EXPECT_EQ(CudaDevice::reports(), "");
    });
  };
  return kind;
}

/// Ranks that are threads, and processes.
inline WorldKind threads() {
  return {"threads", [](uint32_t world) { return shardc::rt::makeLocalWorld(world); }};
}
inline WorldKind processes() {
  WorldKind kind{"processes", {}};
  kind.runs = [](uint32_t world, const WorldKind::Body &body) {
    return Processes(world, body).waitAll();
  };
  return kind;
}

inline std::vector<uint32_t> ranks(uint32_t world) {
  std::vector<uint32_t> all;
  for (uint32_t rank = 0; rank < world; ++rank)
    all.push_back(rank);
  return all;
}

/// A body on each rank of a connected world with devices.
inline std::vector<Outcome> onDevices(const WorldKind &inner, uint32_t world,
                                      const std::function<void(CudaEnd &)> &body,
                                      const char *wish = "device", int devices = 8,
                                      const char *order = "eager", bool real = false) {
  return cudaWorlds("", inner, order, wish, devices, real)
      .run(world, [&](shardc::rt::Communicator &end) {
        connectGroups(end, {ranks(world)});
        body(dynamic_cast<CudaEnd &>(end));
      });
}

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_CUDARANKS_H
