// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a device knows of kernels of other ranks that have failed: words that go with the data of
// collectives, from rank to rank.
#ifndef SHARDC_RUNTIME_DEVICE_FAILUREWORDS_H
#define SHARDC_RUNTIME_DEVICE_FAILUREWORDS_H

#include "runtime/comm/Call.h"
#include "runtime/include/shardrt_device_peer.h"

#include <map>
#include <memory>
#include <span>

namespace shardc::rt {

/// A word that is not 0 says that what was computed after it, or from it, is no result. Every
/// collective has words of its own, so that streams may read them while later collectives write
/// theirs. Functions throw Failure, and do nothing before `watch`.
class FailureWords {
public:
  FailureWords(const shardrt_device_plugin &plugin, void *device)
      : plugin(plugin), device(device) {}
  /// Everything is done.
  ~FailureWords();
  FailureWords(const FailureWords &) = delete;

  void watch(const void *word, const uint64_t *copied) {
    errorWord = word;
    errorCopy = copied;
  }
  /// Before a run, when nothing is in flight.
  void begin();
  /// A collective comes to its stream: returns the word that the others get, in the memory of the
  /// device, which is what this rank's own kernels and what it has from others say where the stream
  /// is now. Null: none.
  const void *offer(const CollectiveCall &call, void *stream);
  /// The stream has got the others' data, and these are their words; null: none.
  void got(const CollectiveCall &call, std::span<const void *const> others, void *stream);
  /// What follows on `compute` comes after the collective, and has its data.
  void passOn(const CollectiveCall &call, void *compute);
  /// When nothing is in flight: others' kernels have failed, of which this rank has data, and its
  /// own have not.
  bool onlyOthersFailed() const;

private:
  struct Words { ///< in the device's memory
    uint64_t offered, seen, passed;
  };
  struct OfGroup {
    const uint64_t *seen = nullptr; ///< the largest word of others so far in this run
    uint64_t *copied = nullptr;     ///< pinned: the same for the host
  };
  void largest(const CollectiveCall &call, std::span<const void *const> of, void *result,
               void *stream);
  template <typename Function> void on(const CollectiveCall &call, Function function);

  const shardrt_device_plugin &plugin;
  void *const device;
  const void *errorWord = nullptr;
  const uint64_t *errorCopy = nullptr;
  std::vector<Words *> blocks; ///< of a fixed size; the first `used` words are of this run
  size_t used = 0;
  struct OfCall {
    Words *words;
    bool areSeen; ///< others' words are there
  };
  std::map<const CollectiveCall *, OfCall> known; ///< the last one of each
  std::map<const Group *, OfGroup> groups;
  /// What the compute stream has from others; null: nothing.
  const uint64_t *passed = nullptr;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_DEVICE_FAILUREWORDS_H
