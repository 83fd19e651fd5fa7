// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How ranks get each other's segments: by a socket of the host that has a random name in no file
// system, with the descriptor in the answer.
#ifndef SHARDC_RUNTIME_SHARED_SEGMENTSERVER_H
#define SHARDC_RUNTIME_SHARED_SEGMENTSERVER_H

#include "runtime/shared/Segment.h"
#include "runtime/support/Futex.h"

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

namespace shardc::rt {

/// What others need to ask a server: they are told it by the control plane, strangers are not.
struct SegmentAddress {
  std::array<unsigned char, 16> name{};
  std::array<unsigned char, 16> token{};
};

/// Gives away descriptors, by a thread of its own: only to processes of the same user that know the
/// token. A stranger gets nothing, and holds nobody up for long.
class SegmentServer {
public:
  /// `find`, called by the server's thread, returns what is asked for, or none. Throws Failure.
  explicit SegmentServer(std::function<Descriptor(uint32_t segment)> find);
  ~SegmentServer();

  const SegmentAddress &address() const { return where; }

private:
  void serve();
  void answer(const Descriptor &client) const;

  const std::function<Descriptor(uint32_t)> find;
  SegmentAddress where;
  Descriptor listener;
  Descriptor stop; ///< readable: the thread ends
  std::thread thread;
};

/// Asks a server for a segment. Throws Failure at the deadline, when `givenUp` (which is asked now
/// and then) says so, or with what the system said.
Descriptor fetchSegment(const SegmentAddress &address, uint32_t segment, Clock::time_point deadline,
                        const std::function<bool()> &givenUp);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_SHARED_SEGMENTSERVER_H
