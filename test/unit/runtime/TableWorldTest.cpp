// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A communicator brought through the C table: with all-to-alls alone, and with every kind.
#include "test/unit/runtime/TableWorld.h"
#include "test/unit/runtime/Ranks.h"

using namespace shardc::rt;
using test::TableEnd, test::ToyWorld;

namespace {

test::WorldKind table(const char *name, bool native) {
  return {name,
          [native](uint32_t size) {
            auto world = std::make_shared<ToyWorld>(size);
            std::vector<std::unique_ptr<Communicator>> ends;
            for (uint32_t rank = 0; rank < size; ++rank)
              ends.push_back(makeTableCommunicator(TableEnd::functions(),
                                                   new TableEnd{world, rank, native}, int32_t(rank),
                                                   int32_t(size)));
            return ends;
          },
          /*namesExtents=*/false};
}

/// A world of two whose first end has this table, which never meets the other.
std::unique_ptr<Communicator> alone(const shardrt_communicator_functions &functions,
                                    void *context) {
  return makeTableCommunicator(functions, context, 0, 2);
}
shardrt_communicator_functions failing(shardrt_status (*transfer)(void *, const shardrt_transfer *,
                                                                  char *)) {
  shardrt_communicator_functions functions{};
  functions.struct_bytes = sizeof functions;
  functions.exchange = [](void *, const shardrt_exchange *, char *) {
    return shardrt_status(SHARDRT_OK);
  };
  functions.transfer = transfer;
  functions.abort = [](void *context, shardrt_status, const char *reason) {
    if (context)
      static_cast<std::vector<std::string> *>(context)->push_back(reason);
  };
  return functions;
}

/// What a broadcast over both ranks of the world throws.
test::Outcome broadcast(Communicator &end) {
  test::Collective collective(SHARDRT_BROADCAST, SHARDRT_REDUCE_NONE, {{SHARDRT_F32, 0, -1, -1}},
                              "broadcast.3", "embed (gpt.py:7)");
  float value = 1;
  int64_t none = 0;
  shardrt_collective_tensor tensor{&value, &value, &none, nullptr, nullptr};
  CollectiveCall call;
  EXPECT_EQ(call.assign(collective.desc, end.group(std::vector<uint32_t>{0, 1}), 1, &tensor), "");
  try {
    end.hostTransport()->run(call, deadlineAfter(60));
  } catch (const Failure &failure) {
    return {failure.status, failure.message};
  }
  return {};
}

} // namespace

SHARDRT_HOST_CONFORMANCE(Table, table("all_to_all", false), table("native", true));

TEST(Table, AnErrorEndsTheWorldOnceAndStays) {
  std::vector<std::string> aborts;
  static int calls;
  calls = 0;
  auto end = alone(failing([](void *, const shardrt_transfer *, char *message) {
                     ++calls;
                     std::snprintf(message, SHARDRT_MESSAGE_BYTES, "the cable is cut");
                     return shardrt_status(SHARDRT_ABORTED);
                   }),
                   &aborts);
  for (int i = 0; i < 2; ++i) {
    test::Outcome outcome = broadcast(*end);
    EXPECT_EQ(outcome.status, SHARDRT_ABORTED);
    EXPECT_EQ(outcome.message, "broadcast.3 (embed (gpt.py:7)): the cable is cut");
  }
  EXPECT_EQ(calls, 1);
  end->abort(SHARDRT_ABORTED, "again");
  EXPECT_EQ(aborts, std::vector<std::string>{"broadcast.3 (embed (gpt.py:7)): the cable is cut"});
}

TEST(Table, NothingIsCalledAfterAnAbort) {
  static int calls;
  calls = 0;
  auto end = alone(failing([](void *, const shardrt_transfer *, char *) {
                     ++calls;
                     return shardrt_status(SHARDRT_OK);
                   }),
                   nullptr);
  EXPECT_EQ(broadcast(*end).status, SHARDRT_OK);
  end->abort(SHARDRT_ABORTED, "interrupted");
  test::Outcome outcome = broadcast(*end);
  EXPECT_EQ(outcome.status, SHARDRT_ABORTED);
  EXPECT_NE(outcome.message.find("given up: interrupted"), std::string::npos) << outcome.message;
  EXPECT_EQ(calls, 1);
}

TEST(Table, WrongAnswersAreErrors) {
  auto noStatus =
      alone(failing([](void *, const shardrt_transfer *, char *) { return shardrt_status(-7); }),
            nullptr);
  test::Outcome outcome = broadcast(*noStatus);
  EXPECT_EQ(outcome.status, SHARDRT_INTERNAL);
  EXPECT_NE(outcome.message.find("gave no reason (it returned -7, which is no status)"),
            std::string::npos)
      << outcome.message;
  // A message that fills its room to the last byte.
  auto endless = alone(failing([](void *, const shardrt_transfer *, char *message) {
                         std::memset(message, 'x', SHARDRT_MESSAGE_BYTES);
                         return shardrt_status(SHARDRT_TIMEOUT);
                       }),
                       nullptr);
  outcome = broadcast(*endless);
  EXPECT_EQ(outcome.status, SHARDRT_TIMEOUT);
  EXPECT_EQ(outcome.message.size(),
            std::strlen("broadcast.3 (embed (gpt.py:7)): ") + SHARDRT_MESSAGE_BYTES - 1);
  // Another rank that claims to have more to say than any can.
  shardrt_communicator_functions functions =
      failing([](void *, const shardrt_transfer *, char *) { return shardrt_status(SHARDRT_OK); });
  functions.exchange = [](void *, const shardrt_exchange *exchange, char *) {
    std::memset(exchange->all, 0x7f, size_t(2 * exchange->bytes));
    return shardrt_status(SHARDRT_OK);
  };
  EXPECT_THROW(alone(functions, nullptr)->barrier(deadlineAfter(60)), Failure);
}

TEST(Table, OptionalFunctionsMayBeMissing) {
  auto end = alone(
      failing([](void *, const shardrt_transfer *, char *) { return shardrt_status(SHARDRT_OK); }),
      nullptr);
  const shardrt_op op{"linear", "model.py:1"};
  end->notePosition(&op);
  end->refuse(1, "no");
  end->leave();
  EXPECT_EQ(broadcast(*end).status, SHARDRT_OK);
}

TEST(Table, LeavesAndIsDestroyedOnce) {
  std::atomic<int> destroyed{0};
  auto world = std::make_shared<ToyWorld>(2);
  auto *end = new TableEnd{world, 0, false, &destroyed};
  auto communicator = makeTableCommunicator(TableEnd::functions(), end, 0, 2);
  communicator->leave();
  communicator->leave();
  EXPECT_EQ(end->left, 1);
  EXPECT_EQ(destroyed, 0);
  communicator.reset();
  EXPECT_EQ(destroyed, 1);
}
