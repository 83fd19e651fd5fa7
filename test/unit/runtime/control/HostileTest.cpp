// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Connections of strangers to a world that works, and hostile messages of somebody who knows the
// secret. The seeds are fixed.
#include "test/unit/runtime/control/Planes.h"

#include "runtime/control/Frame.h"
#include "runtime/control/Handshake.h"
#include "runtime/control/Message.h"
#include "runtime/control/Socket.h"

#include <poll.h>
#include <random>

using namespace shardc::rt;
using namespace test;

namespace {

const std::string secret = ownSecret();

/// A connection as somebody else makes it.
class Client {
public:
  explicit Client(uint16_t port) {
    std::string problem;
    fd = connectTo(numericAddress("127.0.0.1", problem)[0].withPort(port));
    pollfd wait{fd.get(), POLLOUT, 0};
    poll(&wait, 1, patience);
  }
  void send(std::string_view bytes) { ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  /// The next bytes; fewer at the end or when nothing comes.
  std::string read(size_t count) {
    std::string out;
    for (pollfd wait{fd.get(), POLLIN, 0}; out.size() < count && poll(&wait, 1, patience) > 0;) {
      char bytes[4096];
      ssize_t got = recv(fd.get(), bytes, std::min(sizeof bytes, count - out.size()), 0);
      if (got <= 0) {
        ended = true;
        break;
      }
      out.append(bytes, size_t(got));
    }
    return out;
  }
  /// Whether the other end closes it, after some bytes or none.
  bool isClosed() {
    read(1 << 20);
    return ended;
  }
  /// Shows that it knows the secret.
  bool shake(const Key &key) {
    Handshake mine(Handshake::Side::Caller, key);
    send(mine.opening());
    std::string out;
    Handshake::Result result = Handshake::Result::More;
    while (result == Handshake::Result::More) {
      result = mine.take(read(mine.wants()), out);
      send(std::exchange(out, {}));
    }
    writer.emplace(mine.sendKey());
    return result == Handshake::Result::Done;
  }
  void sendMessage(std::string_view body) {
    std::string out;
    writer->append(out, body);
    send(out);
  }

private:
  /// Shorter than the time after which who says nothing is dropped.
  static constexpr int patience = 9000;

  Descriptor fd;
  std::optional<FrameWriter> writer;
  bool ended = false;
};

class ControlHostile : public testing::Test {
protected:
  void SetUp() override {
    port = ownPort();
    std::vector<ControlOptions> options;
    for (uint32_t r = 0; r < 6; ++r) {
      options.push_back(optionsOf(r, 6, ""));
      options[r].address = "127.0.0.1";
      options[r].ports = {port};
      options[r].secret = secret;
    }
    planes = joinAll(options).planes;
    for (const Plane &plane : planes)
      ASSERT_TRUE(plane);
  }
  void TearDown() override { endWorld(planes); }
  void expectUndisturbed() {
    for (const std::string &error :
         onAll(planes, [](ControlPlane &plane) { plane.exchange({"the barrier"}, "", in(60)); }))
      EXPECT_EQ(error, "");
  }

  uint16_t port = 0;
  std::vector<Plane> planes;
};

/// One of each kind of message, as it could come from rank 5.
std::vector<std::string> allMessages() {
  Peer peer{"host", "machine", "127.0.0.1", 1};
  return {encode(Introduction{5, 6, peer, 1}),
          encode(Rejection{6, "no"}),
          encode(Place{1, "127.0.0.1", 1}),
          encode(Greeting{5, 6}),
          encode(Gathered{1, "the barrier", 0, {{5, "a"}}}),
          encode(Spread{1, {"a", "", "", "", "", ""}}),
          encode(Leave{5, 1, "account"}),
          encode(Refusal{5, 1, 3, "reason"}),
          encode(Heartbeat{{{5, 20, "where"}}}),
          encode(Question{5, 9, true, "text"}),
          encode(Reply{0, 1, 5, "text"}),
          encode(Death{5, "reason"}),
          encode(GiveUp{5, 7, "reason"})};
}

} // namespace

TEST_F(ControlHostile, StrangersGetNothingAndDisturbNobody) {
  std::mt19937 random(7);
  Key wrong = worldKey("a secret that somebody guessed");
  for (int trial = 0; trial < 150; ++trial) {
    Client client(port);
    std::string bytes = Handshake(Handshake::Side::Caller, wrong).opening();
    switch (trial % 5) {
    case 0: // noise
      for (char &byte : bytes)
        byte = char(random());
      bytes += std::string(random() % 100000, 'x');
      client.send(bytes);
      EXPECT_EQ(client.read(1000), "");
      break;
    case 1: // the begin of a greeting, and nothing more
      client.send(bytes.substr(0, random() % bytes.size()));
      break;
    case 2: // a wrong proof
      EXPECT_FALSE(client.shake(wrong));
      EXPECT_TRUE(client.isClosed());
      break;
    case 3: // a proof of noise, and messages behind it
      client.send(bytes + std::string(32, char(random())) + std::string(random() % 5000, 'y'));
      client.read(40);
      EXPECT_EQ(client.read(32), std::string(32, '\0')) << "denied";
      EXPECT_TRUE(client.isClosed());
      break;
    case 4: // somebody who asks for a page
      client.send("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n" + std::string(40, '\n'));
      EXPECT_EQ(client.read(1000), "");
      break;
    }
    if (trial % 25 == 0)
      expectUndisturbed();
  }
  expectUndisturbed();
}

TEST_F(ControlHostile, ManySilentConnectionsLeaveRoomForOthers) {
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 400; ++i)
    silent.push_back(std::make_unique<Client>(port));
  EXPECT_TRUE(silent[0]->isClosed()) << "the oldest make room";
  EXPECT_TRUE(Client(port).shake(worldKey(secret)));
  expectUndisturbed();
}

TEST_F(ControlHostile, WhatOneConnectionSaidMeansNothingOnAnother) {
  // What a caller with the secret sent, again.
  Handshake mine(Handshake::Side::Caller, worldKey(secret));
  Client first(port);
  std::string proof;
  first.send(mine.opening());
  ASSERT_EQ(mine.take(first.read(40), proof), Handshake::Result::More);
  first.send(proof);
  ASSERT_EQ(first.read(32).size(), 32u);
  Client second(port);
  second.send(mine.opening() + proof);
  second.read(40);
  EXPECT_EQ(second.read(32), std::string(32, '\0'));
  expectUndisturbed();
}

TEST_F(ControlHostile, WhoKnowsTheSecretHasToSayWhoItIs) {
  for (const std::string &message : allMessages()) {
    uint8_t kind = uint8_t(message[0]);
    if (kind == Introduction::kind || kind == Greeting::kind)
      continue;
    Client client(port);
    ASSERT_TRUE(client.shake(worldKey(secret)));
    client.sendMessage(message);
    EXPECT_TRUE(client.isClosed()) << int(kind);
  }
  for (const std::string &message :
       {encode(Greeting{6, 6}), encode(Greeting{0, 6}), encode(Greeting{5, 7}),
        std::string(1, char(99)), std::string(), encode(Greeting{5, 6}) + "x"}) {
    Client client(port);
    ASSERT_TRUE(client.shake(worldKey(secret)));
    client.sendMessage(message);
    EXPECT_TRUE(client.isClosed());
  }
  expectUndisturbed();
}

TEST_F(ControlHostile, MessagesInTheWrongStateOrWithOtherBytes) {
  // Somebody who knows the secret can end the world, but nothing else may come of it.
  std::mt19937 random(3);
  std::vector<std::string> messages = allMessages();
  for (int trial = 0; trial < 1500; ++trial) {
    Client client(port);
    ASSERT_TRUE(client.shake(worldKey(secret))) << trial;
    client.sendMessage(encode(Greeting{5, 6}));
    for (int i = 0; i < 4; ++i) {
      std::string message = messages[random() % messages.size()];
      for (int changes = int(random() % 4); changes > 0; --changes)
        message[random() % message.size()] = char(random());
      message.resize(message.size() - std::min<size_t>(message.size(), random() % 8 ? 0 : 3));
      client.sendMessage(message);
    }
  }
  EXPECT_TRUE(eventually([&] { return planes[3]->givenUp(); }));
  EXPECT_EQ(planes[1]->ask("", std::chrono::seconds(5)).size(), 6u);
}

TEST_F(ControlHostile, AChangedMessageEndsTheWorldWithAReason) {
  Client client(port);
  ASSERT_TRUE(client.shake(worldKey(secret)));
  client.sendMessage(encode(Greeting{5, 6}));
  client.send(std::string("\x04\x00\x00\x00", 4) + std::string(36, 'z'));
  EXPECT_TRUE(client.isClosed());
  EXPECT_TRUE(eventually([&] { return planes[4]->givenUp(); }));
  EXPECT_CONTAINS(planes[4]->failure()->message, "was cut off: a message was changed on its way");
}
