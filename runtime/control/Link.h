// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One connection of a plane: handshake, then messages. Used by the plane's thread alone.
#ifndef SHARDC_RUNTIME_CONTROL_LINK_H
#define SHARDC_RUNTIME_CONTROL_LINK_H

#include "runtime/control/Frame.h"
#include "runtime/control/Handshake.h"
#include "runtime/control/Socket.h"
#include "runtime/support/Futex.h"

#include <optional>

namespace shardc::rt {

class Link;

/// Why a link came to its end.
enum class LinkEnd : uint8_t {
  Closed,   ///< by the other end, in order
  Lost,     ///< with an error of the system
  Stranger, ///< the other end is no control plane
  Version,  ///< one of another version
  Denied,   ///< one that knows another secret
  Forged,   ///< a message was not what the other end had sent, or made no sense
};

class LinkOwner {
public:
  virtual ~LinkOwner() = default;
  /// Both ends know the secret.
  virtual void opened(Link &link) = 0;
  /// `body` is valid during the call.
  virtual void received(Link &link, std::string_view body) = 0;
  /// Nothing else comes from it. `reason` is for messages: "it was closed".
  virtual void closed(Link &link, LinkEnd end, const std::string &reason) = 0;
  /// It has something to send: the owner calls `flush` soon.
  virtual void unsent(Link &link) = 0;
};

class Link {
public:
  /// A connection that is open or, of a caller, in progress.
  Link(Descriptor socket, Handshake::Side side, const Key &key, LinkOwner &owner);

  /// What epoll reported for the socket.
  void handle(uint32_t events);
  /// Events that it waits for now.
  uint32_t interest() const;
  /// Sends what it can without waiting.
  void flush();

  /// Once open.
  void send(std::string_view body);
  /// Sends what there is to send, and nothing and takes nothing more.
  void finish();
  /// Ends it now, and tells the owner.
  void end(LinkEnd how, const std::string &reason);

  bool isOpen() const { return writer.has_value(); }
  bool isOver() const { return over; }
  bool isFinishing() const { return finishing; }
  const Descriptor &socket() const { return fd; }
  /// The other end's address and port, for messages.
  const std::string &remote() const { return other; }
  Clock::time_point since() const { return born; }
  /// Messages may be long from now on: the other end has said who it is.
  void trust() { reader->setLimit(mostBytes); }
  static constexpr size_t mostBytes = size_t(256) << 20; ///< of a message

  /// What the plane has it for.
  enum class Use : uint8_t {
    Guest,  ///< somebody who called
    Hub,    ///< to rank 0, for the introduction and for what goes to all
    Parent, ///< to the parent in the tree, if that is not rank 0
    Aside,  ///< to ask a rank that other ways do not reach
    Detour, ///< to a rank that passes on what goes to all, in place of one that is gone
  };
  Use use = Use::Guest;
  std::optional<uint32_t> peer;           ///< rank at the other end, once it is known
  uint32_t armed = 0;                     ///< events that epoll was last asked for
  Clock::time_point heard = Clock::now(); ///< when the last message came
  bool spoke = false;                     ///< whether one has come

private:
  bool readHandshake();
  bool readMessages();
  /// Reads up to `limit` bytes; false at the end and when there is nothing now.
  bool read(char *bytes, size_t limit, size_t &got);

  Descriptor fd;
  LinkOwner &owner;
  Handshake handshake;
  std::optional<FrameWriter> writer;
  std::optional<FrameReader> reader;
  std::string in; ///< of the handshake
  std::string out;
  size_t sent = 0; ///< bytes of `out`
  std::string other;
  const Clock::time_point born = Clock::now();
  bool connecting;
  bool broken = false; ///< nothing can be sent any more; what has come is still read
  bool finishing = false, shut = false, over = false;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_CONTROL_LINK_H
