// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of the fake device.
#ifndef SHARDC_TEST_UNIT_RUNTIME_DEVICE_FAKETABLE_H
#define SHARDC_TEST_UNIT_RUNTIME_DEVICE_FAKETABLE_H

#include "runtime/device/Device.h"
#include "test/unit/runtime/device/FakeDevice.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace test {

/// The functions of the table.
struct FakeTable {
  template <typename Function>
  static shardrt_status on(void *device, char *message, Function function) {
    auto &fake = *static_cast<FakeDevice *>(device);
    std::lock_guard lock(fake.mutex);
    try {
      function(fake);
      return SHARDRT_OK;
    } catch (const FakeError &error) {
      if (message)
        std::snprintf(message, SHARDRT_MESSAGE_BYTES, "%s", error.message.c_str());
      return error.status;
    }
  }
  static FakeDevice::Stream &streamOf(void *stream) {
    return *static_cast<FakeDevice::Stream *>(stream);
  }
  static FakeDevice::Event &eventOf(void *event) {
    return *static_cast<FakeDevice::Event *>(event);
  }
  [[noreturn]] static void wrong(const std::string &what) {
    throw FakeError{SHARDRT_INTERNAL, "fake device: " + what};
  }
  static void notInCapture(const FakeDevice &device, const char *what) {
    if (device.origin)
      wrong(std::string(what) + " during a capture");
  }

  static shardrt_status openDevice(const shardrt_device_options *options, void **device,
                                   shardrt_device_facts *facts, char *) {
    auto *made = new FakeDevice;
    ++FakeDevice::open;
    FakeDevice::newest = made;
    *facts = {};
    facts->struct_bytes = sizeof *facts;
    std::snprintf(facts->name, sizeof facts->name, "Fake");
    facts->ordinal = options->ordinal < 0 ? options->local_rank : options->ordinal;
    facts->chip = 80;
    *device = made;
    return SHARDRT_OK;
  }
  static void close(void *device) {
    caught(device);
    --FakeDevice::open;
    delete static_cast<FakeDevice *>(device);
  }
  static shardrt_status allocate(void *device, uint64_t bytes, void **memory, char *message) {
    return on(device, message, [&](FakeDevice &fake) {
      notInCapture(fake, "allocation");
      if (bytes > FakeDevice::largestAllocation)
        throw FakeError{SHARDRT_OUT_OF_MEMORY, "the fake device has no more than " +
                                                   std::to_string(FakeDevice::largestAllocation)};
      void *pages =
          mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      std::memset(pages, 0xcd, bytes);
      mprotect(pages, bytes, fake.opened ? PROT_READ | PROT_WRITE : PROT_NONE);
      fake.blocks[pages] = bytes;
      ++FakeDevice::allocations;
      *memory = pages;
    });
  }
  /// As a driver that waits for everything that the device has to do.
  static void caught(void *device) {
    while (static_cast<FakeDevice *>(device)->stuck)
      pause();
  }
  static void release(void *device, void *memory) {
    caught(device);
    on(device, nullptr, [&](FakeDevice &fake) {
      munmap(memory, fake.blocks.at(memory));
      fake.blocks.erase(memory);
      --FakeDevice::allocations;
    });
  }
  static shardrt_status allocatePinned(void *device, uint64_t bytes, void **memory, char *message) {
    return on(device, message, [&](FakeDevice &fake) {
      notInCapture(fake, "allocation");
      if (FakeDevice::noPinned)
        throw FakeError{SHARDRT_OUT_OF_MEMORY, "the host has no more memory that can be pinned"};
      *memory = std::malloc(bytes);
      std::memset(*memory, 0xab, bytes);
      fake.pinnedBlocks[*memory] = bytes;
      ++FakeDevice::pinned;
    });
  }
  static void releasePinned(void *device, void *memory) {
    caught(device);
    on(device, nullptr, [&](FakeDevice &fake) {
      std::memset(memory, 0xee, fake.pinnedBlocks.at(memory));
      fake.pinnedBlocks.erase(memory);
      std::free(memory);
      --FakeDevice::pinned;
    });
  }
  static int32_t place(void *device, const void *memory) {
    int32_t where = SHARDRT_PLACE_HOST;
    on(device, nullptr, [&](FakeDevice &fake) {
      if (fake.isMine(memory))
        where = SHARDRT_PLACE_DEVICE;
    });
    return where;
  }
  static shardrt_status streamCreate(void *device, void **stream, char *message) {
    return on(device, message, [&](FakeDevice &) {
      *stream = new FakeDevice::Stream;
      ++FakeDevice::objects;
    });
  }
  static void streamDestroy(void *, void *stream) {
    --FakeDevice::objects;
    delete &streamOf(stream);
  }
  static shardrt_status streamSynchronize(void *device, void *stream, char *message) {
    caught(device);
    return on(device, message, [&](FakeDevice &fake) {
      notInCapture(fake, "synchronisation");
      fake.runUntil(streamOf(stream), streamOf(stream).pushed);
    });
  }
  static shardrt_status eventCreate(void *device, int32_t timed, void **event, char *message) {
    return on(device, message, [&](FakeDevice &) {
      *event = new FakeDevice::Event;
      eventOf(*event).timed = timed != 0;
      ++FakeDevice::objects;
    });
  }
  static void eventDestroy(void *, void *event) {
    --FakeDevice::objects;
    delete &eventOf(event);
  }
  static shardrt_status eventRecord(void *device, void *event, void *stream, char *message) {
    return on(device, message, [&](FakeDevice &fake) {
      FakeDevice::Event &e = eventOf(event);
      FakeDevice::Stream &s = streamOf(stream);
      bool timed = e.timed;
      if (timed)
        fake.add(s, {[&fake, &e] { e.us = ++fake.clock; }});
      e.stream = &s;
      e.position = s.pushed;
      e.queries = 0;
      e.captured = s.captured;
      if (s.captured) {
        e.seen = s.seen;
        e.seen[&s] = s.nodes;
      }
    });
  }
  static shardrt_status eventQuery(void *device, void *event, int32_t *done, char *message) {
    return on(device, message, [&](FakeDevice &fake) {
      FakeDevice::Event &e = eventOf(event);
      if (e.captured)
        wrong("query of an event in a capture");
      // Never at once, and not before it was asked for several times.
      if (!fake.stuck && e.stream && e.stream->executed < e.position && ++e.queries > 3)
        fake.runUntil(*e.stream, e.position, true);
      *done = !e.stream || e.stream->executed >= e.position;
    });
  }
  static shardrt_status eventSynchronize(void *device, void *event, char *message) {
    caught(device);
    return on(device, message, [&](FakeDevice &fake) {
      FakeDevice::Event &e = eventOf(event);
      if (e.captured)
        wrong("wait for an event in a capture");
      if (e.stream)
        fake.runUntil(*e.stream, e.position);
    });
  }
  static shardrt_status streamWaitEvent(void *device, void *stream, void *event, char *message) {
    return on(device, message, [&](FakeDevice &fake) {
      FakeDevice::Event &e = eventOf(event);
      FakeDevice::Stream &s = streamOf(stream);
      if (!e.stream)
        return;
      if (e.captured) {
        s.captured = true;
        fake.captured.insert(&s);
        for (auto [other, nodes] : e.seen)
          s.seen[other] = std::max(s.seen[other], nodes);
        ++s.nodes;
        return;
      }
      if (s.captured)
        wrong("a captured stream waits for what is outside of the capture");
      fake.add(s, {nullptr, e.stream, e.position});
    });
  }
  static shardrt_status elapsed(void *, void *begin, void *end, double *us, char *) {
    *us = eventOf(end).us - eventOf(begin).us;
    return SHARDRT_OK;
  }
  static shardrt_status copyRows(void *device, void *to, uint64_t toPitch, const void *from,
                                 uint64_t fromPitch, uint64_t bytes, uint64_t rows, void *stream,
                                 char *message) {
    return on(device, message, [&](FakeDevice &fake) {
      if (bytes == 0 || rows == 0)
        return;
      if (rows > 1 && (toPitch < bytes || fromPitch < bytes))
        wrong("rows of a copy overlap");
      uint64_t fromBytes = (rows - 1) * fromPitch + bytes, toBytes = (rows - 1) * toPitch + bytes;
      bool toDevice = fake.isMine(to, toBytes), fromDevice = fake.isMine(from, fromBytes);
      if ((fake.isMine(to) && !toDevice) || (fake.isMine(from) && !fromDevice))
        wrong("a copy goes beyond an allocation");
      if (!toDevice && !fake.isPinned(to))
        wrong("a copy to memory that is not pinned");
      // What is not pinned is read now; what is, when the copy runs.
      std::shared_ptr<std::vector<char>> snapshot;
      if (!fromDevice && !fake.isPinned(from)) {
        auto *begin = static_cast<const char *>(from);
        snapshot = std::make_shared<std::vector<char>>(begin, begin + fromBytes);
      }
      fake.add(streamOf(stream), {[=] {
                 auto *source = snapshot ? snapshot->data() : static_cast<const char *>(from);
                 for (uint64_t row = 0; row < rows; ++row)
                   std::memcpy(static_cast<char *>(to) + row * toPitch, source + row * fromPitch,
                               bytes);
               }});
    });
  }
  static shardrt_status copy(void *device, void *to, const void *from, uint64_t bytes, void *stream,
                             char *message) {
    return copyRows(device, to, bytes, from, bytes, bytes, 1, stream, message);
  }
  static shardrt_status fill(void *device, void *to, uint8_t value, uint64_t bytes, void *stream,
                             char *message) {
    return on(device, message, [&](FakeDevice &fake) {
      fake.add(streamOf(stream), {[=] { std::memset(to, value, bytes); }});
    });
  }
  static shardrt_status moduleLoad(void *device, const shardrt_device_image *images, uint32_t count,
                                   void **module, char *message) {
    return on(device, message, [&](FakeDevice &) {
      if (count != 1 || images[0].chip != 80)
        throw FakeError{SHARDRT_INCOMPATIBLE, "the program has no code for the fake device"};
      *module = const_cast<void *>(images[0].data);
    });
  }
  static void moduleUnload(void *device, void *) { caught(device); }
  static shardrt_status kernelFind(void *device, void *module, const shardrt_kernel *kernel,
                                   void **found, char *message) {
    return on(device, message, [&](FakeDevice &) {
      for (auto *one = static_cast<FakeKernel *>(module); one->name; ++one)
        if (std::strcmp(one->name, kernel->name) == 0) {
          *found = one;
          return;
        }
      throw FakeError{SHARDRT_BAD_FILE,
                      std::string("the program's code lacks the kernel ") + kernel->name};
    });
  }
  static shardrt_status launch(void *device, void *kernel, const uint32_t[3], const uint32_t[3],
                               uint32_t paramCount, const void *const *params, void *stream,
                               char *message) {
    return on(device, message, [&](FakeDevice &fake) {
      ++FakeDevice::launches;
      auto *run = static_cast<FakeKernel *>(kernel)->run;
      auto *word = *static_cast<uint64_t *const *>(params[0]);
      uint32_t number = *static_cast<const uint32_t *>(params[1]);
      std::vector<uint64_t> own;
      for (uint32_t i = 0; i < paramCount; ++i)
        own.push_back(*static_cast<const uint64_t *>(params[2 + i]));
      fake.add(streamOf(stream), {[=] { run(word, number, own.data()); }});
    });
  }
  static shardrt_status gemm(void *device, const shardrt_gemm *gemm, void *stream, char *message) {
    return on(device, message, [&](FakeDevice &fake) {
      fake.add(streamOf(stream), {[g = *gemm] {
                 auto *a = static_cast<const float *>(g.a), *b = static_cast<const float *>(g.b);
                 for (int64_t i = 0; i < g.m; ++i)
                   for (int64_t j = 0; j < g.n; ++j) {
                     float sum = 0;
                     for (int64_t k = 0; k < g.k; ++k)
                       sum += a[i * g.lda + k] * b[k * g.ldb + j];
                     static_cast<float *>(g.c)[i * g.ldc + j] = float(g.alpha) * sum;
                   }
               }});
    });
  }
  static shardrt_status captureBegin(void *device, void *stream, char *message) {
    return on(device, message, [&](FakeDevice &fake) {
      notInCapture(fake, "a capture");
      if (FakeDevice::noCapture)
        wrong("it cannot capture now");
      fake.origin = &streamOf(stream);
      fake.origin->captured = true;
      fake.captured = {fake.origin};
      fake.graph = std::make_unique<FakeDevice::Graph>();
    });
  }
  static shardrt_status captureEnd(void *device, void *stream, void **graph, char *message) {
    *graph = nullptr;
    return on(device, message, [&](FakeDevice &fake) {
      if (fake.origin != &streamOf(stream))
        wrong("the end of a capture that did not begin");
      bool joined = true;
      for (FakeDevice::Stream *other : fake.captured)
        joined &= other == fake.origin || fake.origin->seen[other] >= other->nodes;
      for (FakeDevice::Stream *other : fake.captured) {
        other->captured = false;
        other->seen.clear();
        other->nodes = 0;
      }
      fake.origin = nullptr;
      if (!joined)
        wrong("a stream of the capture was not joined");
      *graph = fake.graph.release();
      ++FakeDevice::objects;
    });
  }
  static shardrt_status graphLaunch(void *device, void *graph, void *stream, char *message) {
    return on(device, message, [&](FakeDevice &fake) {
      ++FakeDevice::graphLaunches;
      for (const FakeDevice::Node &node : static_cast<FakeDevice::Graph *>(graph)->nodes)
        fake.add(streamOf(stream), node);
    });
  }
  static void graphDestroy(void *, void *graph) {
    --FakeDevice::objects;
    delete static_cast<FakeDevice::Graph *>(graph);
  }
};

inline const shardrt_device_plugin &FakeDevice::table() {
  using T = FakeTable;
  static const shardrt_device_plugin all = {sizeof(shardrt_device_plugin),
                                            SHARDRT_DEVICE_VERSION,
                                            0,
                                            "fake",
                                            T::openDevice,
                                            T::close,
                                            T::allocate,
                                            T::release,
                                            T::allocatePinned,
                                            T::releasePinned,
                                            T::place,
                                            T::streamCreate,
                                            T::streamDestroy,
                                            T::streamSynchronize,
                                            T::eventCreate,
                                            T::eventDestroy,
                                            T::eventRecord,
                                            T::eventQuery,
                                            T::eventSynchronize,
                                            T::streamWaitEvent,
                                            T::elapsed,
                                            T::copy,
                                            T::copyRows,
                                            T::fill,
                                            T::moduleLoad,
                                            T::moduleUnload,
                                            T::kernelFind,
                                            T::launch,
                                            T::gemm,
                                            T::captureBegin,
                                            T::captureEnd,
                                            T::graphLaunch,
                                            T::graphDestroy,
                                            nullptr};
  return all;
}

/// One of these, opened as the runtime does.
inline std::shared_ptr<const shardc::rt::Device> fakeDevice() {
  shardrt_device_options options{};
  options.struct_bytes = sizeof options;
  return std::make_shared<const shardc::rt::Device>(
      shardc::rt::DevicePlugin{"fake", &FakeDevice::table(), nullptr}, options);
}

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_DEVICE_FAKETABLE_H
