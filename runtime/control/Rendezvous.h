// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How ranks find rank 0, and whom it takes. Without threads of their own.
#ifndef SHARDC_RUNTIME_CONTROL_RENDEZVOUS_H
#define SHARDC_RUNTIME_CONTROL_RENDEZVOUS_H

#include "runtime/control/Message.h"
#include "runtime/control/Socket.h"
#include "runtime/control/TcpControlPlane.h"

namespace shardc::rt {

/// Rank 0's list of who has come.
class Guests {
public:
  /// `self`: rank 0 itself.
  explicit Guests(Introduction self);

  /// What is wrong with a rank that comes; nothing if it was taken.
  std::optional<std::string> take(const Introduction &guest);
  bool complete() const { return count == guests.size(); }
  const std::optional<Introduction> &of(uint32_t rank) const { return guests[rank]; }
  std::vector<uint32_t> missing() const;

private:
  std::vector<std::optional<Introduction>> guests;
  size_t count = 1;
};

/// Where rank 0 may be: its addresses, each with each port, one after the other.
class Search {
public:
  Search(std::vector<SocketAddress> places)
      : places(std::move(places)), reasons(this->places.size()) {}

  /// The next place to try; nothing after the last one: then all are tried again after `pause`.
  std::optional<SocketAddress> next();
  std::chrono::milliseconds pause();
  /// How long the place that `next` gave last may take to answer. Where there are others it is
  /// short at first: something that takes connections and says nothing may have the port.
  std::chrono::milliseconds patience() const;
  /// Why the place that `next` gave last was not it. What somebody there said (`answered`) is kept,
  /// also when nobody is there any more.
  void note(const std::string &reason, bool answered);
  /// "127.0.0.1:29500: Connection refused; 127.0.0.1:29501: ..."
  std::string str() const;

private:
  std::vector<SocketAddress> places;
  struct Reason {
    std::string text = "no answer";
    bool answered = false;
  };
  std::vector<Reason> reasons;
  size_t at = 0;
  std::chrono::milliseconds nap{5}, answerTime{1000};
};

/// What a rank has before its plane starts.
struct Meeting {
  std::string secret;
  std::vector<SocketAddress> places;    ///< of rank 0
  std::vector<Descriptor> listening;    ///< at rank 0
  Descriptor local;                     ///< at rank 0: a Unix socket that gives `note` away
  std::string note;                     ///< secret and places, for processes of the same user
  std::vector<SocketAddress> interface; ///< at which the rank was told to listen
};

/// Checks the options, makes the sockets of rank 0, or finds out where it is. Waits until the
/// deadline for what other processes have to do first. Throws Failure.
Meeting prepareMeeting(const ControlOptions &options, Clock::time_point deadline);

/// This process, as it introduces itself.
Introduction introduceSelf(const ControlOptions &options);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_CONTROL_RENDEZVOUS_H
