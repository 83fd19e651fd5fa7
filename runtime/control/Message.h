// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What planes tell each other, in the form of ByteWriter.
#ifndef SHARDC_RUNTIME_CONTROL_MESSAGE_H
#define SHARDC_RUNTIME_CONTROL_MESSAGE_H

#include "runtime/control/ControlPlane.h"
#include "runtime/support/Bytes.h"

namespace shardc::rt {

/// How a rank introduces itself to rank 0, and what all ranks learn of it.
struct Introduction {
  static constexpr uint8_t kind = 1;
  uint32_t rank = 0, worldSize = 0;
  Peer peer;
  uint16_t port = 0; ///< at which others reach its plane
  void fields(auto &f) {
    f(rank, worldSize, peer.host, peer.machine, peer.address, peer.pid, port);
  }
};

/// Rank 0 to one that cannot be a part of this world, or of a world that was given up.
struct Rejection {
  static constexpr uint8_t kind = 2;
  int32_t status = 0;
  std::string reason;
  void fields(auto &f) { f(status, reason); }
};

/// Rank 0 to each other rank, when all are there: its parent in the tree.
struct Place {
  static constexpr uint8_t kind = 3;
  uint32_t parent = 0;
  std::string address;
  uint16_t port = 0;
  void fields(auto &f) { f(parent, address, port); }
};

/// The first message on a connection between ranks other than that of its introduction.
struct Greeting {
  static constexpr uint8_t kind = 4;
  uint32_t rank = 0, worldSize = 0;
  void fields(auto &f) { f(rank, worldSize); }
};

/// What a rank gives to an exchange.
struct Part {
  uint32_t rank = 0;
  std::string bytes;
  void fields(auto &f) { f(rank, bytes); }
};

/// To the parent: the parts of a whole subtree.
struct Gathered {
  static constexpr uint8_t kind = 5;
  uint64_t number = 0; ///< of the exchange
  std::string topic;
  uint64_t run = 0;
  std::vector<Part> parts;
  void fields(auto &f) { f(number, topic, run, parts); }
};

/// To the children: all parts, by rank.
struct Spread {
  static constexpr uint8_t kind = 6;
  uint64_t number = 0;
  std::vector<std::string> parts;
  void fields(auto &f) { f(number, parts); }
};

/// To all: `rank` gives the world up.
struct GiveUp {
  static constexpr uint8_t kind = 7;
  uint32_t rank = 0;
  int32_t status = 0;
  std::string reason;
  void fields(auto &f) { f(rank, status, reason); }
};

/// To all: the connection to `rank` was lost.
struct Death {
  static constexpr uint8_t kind = 8;
  uint32_t rank = 0;
  std::string reason;
  void fields(auto &f) { f(rank, reason); }
};

struct Leave {
  static constexpr uint8_t kind = 9;
  uint32_t rank = 0;
  uint64_t exchanges = 0; ///< that it took part in
  std::string account;
  void fields(auto &f) { f(rank, exchanges, account); }
};

struct Refusal {
  static constexpr uint8_t kind = 10;
  uint32_t rank = 0;
  uint64_t exchanges = 0; ///< that it had taken part in
  uint64_t run = 0;
  std::string reason;
  void fields(auto &f) { f(rank, exchanges, run, reason); }
};

/// Where a rank said that it was.
struct Sighting {
  uint32_t rank = 0;
  uint64_t milliseconds = 0; ///< ago
  std::string where;
  void fields(auto &f) { f(rank, milliseconds, where); }
};

/// To the parent: sightings of the subtree; to the children: of all ranks.
struct Heartbeat {
  static constexpr uint8_t kind = 11;
  std::vector<Sighting> sightings;
  void fields(auto &f) { f(sightings); }
};

/// To all. The answer goes back the way on which the question came first.
struct Question {
  static constexpr uint8_t kind = 12;
  uint32_t rank = 0; ///< that asks
  uint64_t number = 0;
  bool progress = false; ///< asks the plane for its Progress
  std::string text;
  void fields(auto &f) { f(rank, number, progress, text); }
};

struct Reply {
  static constexpr uint8_t kind = 13;
  uint32_t asker = 0;
  uint64_t number = 0;
  uint32_t rank = 0; ///< that answers
  std::string text;
  void fields(auto &f) { f(asker, number, rank, text); }
};

/// How far a rank is, for messages about exchanges that do not complete.
struct Progress {
  uint64_t exchanges = 0; ///< begun
  std::string where;
  void fields(auto &f) { f(exchanges, where); }
};

template <typename Message> std::string encode(const Message &message) {
  ByteWriter writer;
  if constexpr (requires { Message::kind; })
    writer(Message::kind);
  writer(message);
  return std::move(writer.bytes);
}

/// Of the bytes behind the kind. Nothing if they are not exactly such a message.
template <typename Message> std::optional<Message> decode(std::string_view bytes) {
  ByteReader reader(bytes);
  Message message;
  reader(message);
  return reader.complete() ? std::optional(std::move(message)) : std::nullopt;
}

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_CONTROL_MESSAGE_H
