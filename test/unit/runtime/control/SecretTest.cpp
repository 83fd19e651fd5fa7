// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Handshake, frames and messages without sockets: what was changed, cut, repeated or sent back is
// not taken.
#include "runtime/control/Frame.h"
#include "runtime/control/Handshake.h"
#include "runtime/control/Message.h"

#include <gtest/gtest.h>
#include <random>

using namespace shardc::rt;

namespace {

using Side = Handshake::Side;
using Result = Handshake::Result;

const Key key = worldKey("the secret of this world");

/// Carries messages between two ends until one of them stops; what each came to.
std::pair<Result, Result> shake(Handshake &caller, Handshake &callee) {
  std::string toCallee = caller.opening(), toCaller;
  Result one = Result::More, other = Result::More;
  while (one == Result::More || other == Result::More) {
    if (!toCallee.empty())
      other = callee.take(std::exchange(toCallee, {}), toCaller);
    else if (!toCaller.empty())
      one = caller.take(std::exchange(toCaller, {}), toCallee);
    else
      break;
  }
  return {one, other};
}

template <typename Message> void roundTrip(const Message &message) {
  std::string bytes = encode(message);
  ASSERT_EQ(uint8_t(bytes[0]), Message::kind);
  std::string body = bytes.substr(1);
  auto back = decode<Message>(body);
  ASSERT_TRUE(back);
  EXPECT_EQ(encode(*back), bytes);
  for (size_t length = 0; length < body.size(); ++length)
    EXPECT_FALSE(decode<Message>(body.substr(0, length))) << int(Message::kind) << " " << length;
  EXPECT_FALSE(decode<Message>(body + "x"));
}

template <typename Message> void fuzz(std::mt19937 &random, const Message &message) {
  for (int trial = 0; trial < 2000; ++trial) {
    std::string body = encode(message).substr(1);
    for (int changes = 1 + int(random() % 4); changes > 0 && !body.empty(); --changes)
      body[random() % body.size()] = char(random());
    if (auto back = decode<Message>(body)) { // what is taken is a message
      EXPECT_EQ(encode(*back).size(), body.size() + 1);
    }
  }
}

void forAllMessages(auto check) {
  Peer peer{"host", "machine", "10.0.0.1", 4711};
  check(Introduction{1, 4, peer, 29500});
  check(Rejection{6, "no"});
  check(Place{1, "10.0.0.1", 4});
  check(Greeting{3, 4});
  check(Gathered{7, "the barrier", 3, {{0, "a"}, {1, ""}, {2, "ccc"}}});
  check(Spread{7, {"a", "", "ccc"}});
  check(GiveUp{2, 7, "reason"});
  check(Death{2, "reason"});
  check(Leave{2, 4, "account"});
  check(Refusal{2, 4, 3, "reason"});
  check(Heartbeat{{{1, 20, "where"}, {2, 30, "there"}}});
  check(Question{1, 9, true, "text"});
  check(Reply{1, 9, 2, "text"});
}

} // namespace

TEST(ControlSecret, TagsDependOnKeyAndBytes) {
  // HMAC-SHA-512-256 of "what do ya want for nothing?" with the key "Jefe" padded to 32 bytes with
  // zeros; a shorter key is padded so in any HMAC. From RFC 4231, test case 2, cut to 32 bytes.
  Key jefe{'J', 'e', 'f', 'e'};
  EXPECT_EQ(hexOf(viewOf(tagOf(jefe, {"what do ya want ", "for nothing?"}))),
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554");
  EXPECT_NE(worldKey("a"), worldKey("b"));
  Tag tag = tagOf(key, {"a"});
  EXPECT_TRUE(sameTag(tag, viewOf(tag)));
  EXPECT_FALSE(sameTag(tag, viewOf(tag).substr(0, 31)));
  EXPECT_NE(makeSecret(), makeSecret());
  EXPECT_EQ(makeSecret().size(), 64u);
}

TEST(ControlHandshake, BothEndsThatKnowTheSecretAgreeOnKeys) {
  Handshake caller(Side::Caller, key), callee(Side::Callee, key);
  EXPECT_EQ(shake(caller, callee), std::pair(Result::Done, Result::Done));
  EXPECT_EQ(caller.sendKey(), callee.receiveKey());
  EXPECT_EQ(callee.sendKey(), caller.receiveKey());
  EXPECT_NE(caller.sendKey(), caller.receiveKey());
  Handshake again(Side::Caller, key), once(Side::Callee, key);
  shake(again, once);
  EXPECT_NE(caller.sendKey(), again.sendKey()) << "keys are of one connection";
}

TEST(ControlHandshake, AnotherSecretIsDenied) {
  Handshake caller(Side::Caller, key), callee(Side::Callee, worldKey("another secret"));
  EXPECT_EQ(shake(caller, callee), std::pair(Result::Denied, Result::Denied));
}

TEST(ControlHandshake, EveryChangedBitIsNoticed) {
  for (size_t message = 0; message < 4; ++message)
    for (size_t bit = 0; bit < 72 * 8; bit += 3) {
      Handshake caller(Side::Caller, key), callee(Side::Callee, key);
      Handshake *ends[] = {&callee, &caller};
      std::string bytes = caller.opening();
      Result result = Result::More;
      for (size_t i = 0; i < 4 && result == Result::More; ++i) {
        if (i == message)
          bytes[bit / 8 % bytes.size()] ^= char(1 << bit % 8);
        std::string reply;
        result = ends[i % 2]->take(bytes, reply);
        bytes = reply;
        if (i == 2 && result == Result::Done) // the callee; its proof is on its way
          result = Result::More;
      }
      EXPECT_NE(result, Result::Done) << message << " " << bit;
    }
}

TEST(ControlHandshake, WhatWasHeardCannotBeSentAgain) {
  // A recorded proof does not fit another nonce.
  Handshake caller(Side::Caller, key), callee(Side::Callee, key);
  std::string challenge, proof, done;
  callee.take(caller.opening(), challenge);
  caller.take(challenge, proof);
  Handshake later(Side::Callee, key);
  std::string out;
  EXPECT_EQ(later.take(caller.opening(), out), Result::More);
  EXPECT_EQ(later.take(proof, out), Result::Denied);
  // A caller cannot let the callee itself make the proof that it asks for.
  Handshake victim(Side::Callee, key), mirror(Side::Callee, key);
  std::string first, second;
  victim.take(caller.opening(), first);
  mirror.take(first, second);
  EXPECT_EQ(victim.take(second.substr(8), out), Result::Denied);
  EXPECT_EQ(callee.take(proof, done), Result::Done);
  Handshake reflected(Side::Callee, key);
  reflected.take(caller.opening(), out);
  EXPECT_EQ(reflected.take(done, out), Result::Denied);
}

TEST(ControlHandshake, StrangersAndVersions) {
  std::string out;
  EXPECT_EQ(Handshake(Side::Callee, key).take(std::string(40, 'G'), out), Result::Stranger);
  EXPECT_EQ(Handshake(Side::Callee, key).take("", out), Result::Stranger);
  EXPECT_EQ(out, "") << "a stranger gets nothing";
  Handshake other(Side::Callee, key);
  std::string greeting = Handshake(Side::Caller, key).opening();
  greeting[7] = char(controlVersion + 1);
  EXPECT_EQ(other.take(greeting, out), Result::Version);
  EXPECT_EQ(other.otherVersion(), controlVersion + 1);
  EXPECT_EQ(uint8_t(out[7]), controlVersion) << "the caller can say both";
  Handshake caller(Side::Caller, key);
  out[7] = char(controlVersion + 2);
  std::string nothing;
  EXPECT_EQ(caller.take(out, nothing), Result::Version);
  EXPECT_EQ(nothing, "");
}

TEST(ControlFrame, MessagesComeInPieces) {
  FrameWriter writer(key);
  FrameReader reader(key);
  std::string bytes;
  for (const char *text : {"one", "", "three"})
    writer.append(bytes, text);
  std::vector<std::string> got;
  for (char byte : bytes) {
    reader.feed({&byte, 1});
    for (std::string_view body; reader.next(body) == FrameReader::Result::Message;)
      got.emplace_back(body);
  }
  EXPECT_EQ(got, (std::vector<std::string>{"one", "", "three"}));
}

TEST(ControlFrame, ChangedRepeatedAndReorderedOnesAreForged) {
  FrameWriter writer(key);
  std::string first, second;
  writer.append(first, "the first message");
  writer.append(second, "the second");
  auto resultOf = [](const std::string &bytes, const Key &with = key) {
    FrameReader reader(with);
    reader.feed(bytes);
    std::string_view body;
    FrameReader::Result result = FrameReader::Result::Message;
    while (result == FrameReader::Result::Message)
      result = reader.next(body);
    return result;
  };
  EXPECT_EQ(resultOf(first + second), FrameReader::Result::More);
  EXPECT_EQ(resultOf(first + first), FrameReader::Result::Forged);
  EXPECT_EQ(resultOf(second), FrameReader::Result::Forged);
  EXPECT_EQ(resultOf(first, worldKey("another direction")), FrameReader::Result::Forged);
  for (size_t bit = 0; bit < 8 * first.size(); ++bit) {
    std::string changed = first;
    changed[bit / 8] ^= char(1 << bit % 8);
    changed += std::string(512, 'x');
    FrameReader::Result result = resultOf(changed);
    if (bit < 32) // of the length
      EXPECT_NE(result, FrameReader::Result::Message) << bit;
    else
      EXPECT_EQ(result, FrameReader::Result::Forged) << bit;
  }
  EXPECT_EQ(resultOf(std::string("\xff\xff\xff\x7f", 4)), FrameReader::Result::TooLong);
  EXPECT_EQ(resultOf(std::string("\x01\x00\x01\x00", 4)), FrameReader::Result::TooLong)
      << "who has not said who it is sends short messages";
}

TEST(ControlMessage, EveryLengthIsChecked) {
  forAllMessages([](const auto &message) { roundTrip(message); });
  // A list that says to be longer than any memory.
  EXPECT_FALSE(decode<Spread>(std::string(8, 'n') + "\xff\xff\xff\xff"));
  EXPECT_FALSE(decode<Heartbeat>("\xff\xff\xff\xff" + std::string(100, '\0')));
}

TEST(ControlMessage, ChangedBytes) {
  std::mt19937 random(12);
  forAllMessages([&](const auto &message) { fuzz(random, message); });
}
