// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Control planes whose ranks are threads of one process: what tests of communicators over a control
// plane use, and the behaviour that a real one must have.
#ifndef SHARDC_TEST_UNIT_RUNTIME_THREADCONTROL_H
#define SHARDC_TEST_UNIT_RUNTIME_THREADCONTROL_H

#include "runtime/control/ControlPlane.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace test {

/// What the ranks of a world of threads share.
class ThreadControlWorld {
public:
  explicit ThreadControlWorld(uint32_t size) : ranks(size) {}

  struct Rank {
    std::function<void()> wake;
    shardc::rt::ControlPlane::Answer answer;
    std::optional<std::string> account; ///< has left
    std::map<uint64_t, std::string> refusals;
    const char *topic = nullptr;
    std::string mine;
    uint64_t exchanges = 0;
    bool dead = false;
  };

  /// Gives the world up; the first reason is kept.
  void giveUp(uint32_t rank, shardrt_status status, const std::string &reason) {
    change([&] {
      if (!reasonOf)
        reasonOf.emplace(status, "rank " + std::to_string(rank) + ": " + reason);
      aborted = true;
    });
  }
  /// As a process that is killed: it answers nobody and the world is given up.
  void kill(uint32_t rank) {
    {
      std::lock_guard lock(mutex);
      ranks[rank].dead = true;
    }
    giveUp(rank, SHARDRT_ABORTED, "rank " + std::to_string(rank) + " has died");
  }
  /// Changes the state under the lock and wakes everybody.
  template <typename Change> void change(Change body) {
    std::vector<std::function<void()>> wakes;
    {
      std::lock_guard lock(mutex);
      body();
      for (Rank &rank : ranks)
        if (rank.wake)
          wakes.push_back(rank.wake);
    }
    changed.notify_all();
    for (auto &wake : wakes)
      wake();
  }

  /// How long others take to answer a question; set before planes are made.
  std::chrono::milliseconds answerTime{0};
  std::atomic<int> questions{0};
  /// The machine of each rank; empty: all on one. Set before planes are made.
  std::vector<std::string> machines;
  /// Of all ranks; set before planes are made.
  std::string address = "127.0.0.1";
  std::mutex mutex; ///< guards what follows, but for `aborted`
  std::condition_variable changed;
  std::vector<Rank> ranks;
  std::optional<shardc::rt::Failure> reasonOf;
  std::atomic<bool> aborted{false};
};

class ThreadControl final : public shardc::rt::ControlPlane {
public:
  ThreadControl(std::shared_ptr<ThreadControlWorld> world, uint32_t self)
      : world(std::move(world)), self(self) {
    for (uint32_t r = 0; r < this->world->ranks.size(); ++r)
      everybody.push_back(
          {"here", this->world->machines.empty() ? "this machine" : this->world->machines[r],
           this->world->address, getpid()});
  }
  ~ThreadControl() override {
    world->change([&] {
      mine().wake = nullptr;
      mine().answer = nullptr;
      if (!mine().account && !mine().dead && !world->reasonOf) {
        world->reasonOf.emplace(SHARDRT_ABORTED, "rank " + std::to_string(self) + " has died");
        world->aborted = true;
      }
    });
  }

  uint32_t worldSize() const override { return uint32_t(world->ranks.size()); }
  uint32_t rank() const override { return self; }
  const std::vector<shardc::rt::Peer> &peers() const override { return everybody; }

  std::vector<std::string> exchange(const shardc::rt::Topic &topic, std::string_view text,
                                    shardc::rt::Clock::time_point deadline) override {
    uint64_t number = 0;
    world->change([&] {
      mine().topic = topic.name;
      mine().mine = text;
      number = ++mine().exchanges;
    });
    std::vector<std::string> texts;
    std::optional<shardc::rt::Failure> failure;
    {
      std::unique_lock lock(world->mutex);
      bool came = world->changed.wait_until(lock, deadline, [&] {
        failure = world->reasonOf;
        texts.clear();
        for (auto &rank : world->ranks) {
          if (!failure && rank.refusals.contains(topic.run) && topic.run != 0)
            failure.emplace(SHARDRT_ABORTED, rank.refusals[topic.run]);
          if (rank.exchanges == number || rank.exchanges == number + 1)
            texts.push_back(rank.mine);
          else if (!failure && rank.exchanges < number && rank.account)
            failure.emplace(SHARDRT_ABORTED, "a rank has left");
        }
        return texts.size() == world->ranks.size() || failure;
      });
      if (texts.size() == world->ranks.size())
        failure.reset();
      else if (!came)
        failure.emplace(SHARDRT_TIMEOUT, std::string(topic.name) + ": some ranks did not come");
    }
    // Counts are odd while a rank waits for others: nobody begins the next exchange, and changes
    // what it gives, before all have read this one.
    if (!failure) {
      std::unique_lock lock(world->mutex);
      ++world->ranks[self].exchanges;
      world->changed.notify_all();
      world->changed.wait(lock, [&] {
        return world->reasonOf ||
               std::all_of(world->ranks.begin(), world->ranks.end(),
                           [&](const auto &rank) { return rank.exchanges > number; });
      });
      return texts;
    }
    abort(failure->status, failure->message);
    throw shardc::rt::Failure(failure->status, std::string(topic.name) + ": " + failure->message);
  }

  void abort(shardrt_status status, const std::string &reason) noexcept override {
    world->giveUp(self, status, reason);
  }
  void refuse(uint64_t run, const std::string &reason) noexcept override {
    world->change([&] { mine().refusals.emplace(run, reason); });
  }
  void leave(std::string_view account) noexcept override {
    world->change([&] {
      if (!mine().account)
        mine().account = std::string(account);
    });
  }

  bool givenUp() const noexcept override { return world->aborted; }
  std::optional<shardc::rt::Failure> failure() const override {
    std::lock_guard lock(world->mutex);
    return world->reasonOf;
  }
  std::optional<std::string> left(uint32_t rank) const override {
    std::lock_guard lock(world->mutex);
    return world->ranks[rank].account;
  }
  std::optional<std::string> refused(uint32_t rank, uint64_t run) const override {
    std::lock_guard lock(world->mutex);
    auto &refusals = world->ranks[rank].refusals;
    auto found = refusals.find(run);
    return found == refusals.end() ? std::nullopt : std::optional(found->second);
  }
  void onChange(std::function<void()> wake) override {
    std::lock_guard lock(world->mutex);
    mine().wake = std::move(wake);
  }
  void answerWith(Answer answer) override {
    std::lock_guard lock(world->mutex);
    mine().answer = std::move(answer);
  }
  std::vector<std::optional<std::string>> ask(std::string_view question,
                                              std::chrono::nanoseconds) override {
    ++world->questions;
    std::this_thread::sleep_for(world->answerTime);
    std::lock_guard lock(world->mutex);
    std::vector<std::optional<std::string>> answers;
    for (auto &rank : world->ranks)
      answers.push_back(rank.answer && !rank.dead ? std::optional(rank.answer(question))
                                                  : std::nullopt);
    return answers;
  }
  std::optional<LastSeen> lastSeen(uint32_t rank) const override {
    std::lock_guard lock(world->mutex);
    auto &answer = world->ranks[rank].answer;
    if (!answer)
      return std::nullopt;
    return LastSeen{answer({}), std::chrono::nanoseconds(0)};
  }

private:
  ThreadControlWorld::Rank &mine() const { return world->ranks[self]; }

  const std::shared_ptr<ThreadControlWorld> world;
  const uint32_t self;
  std::vector<shardc::rt::Peer> everybody;
};

/// The planes of a world, one for each rank.
inline std::vector<std::shared_ptr<shardc::rt::ControlPlane>>
makeThreadControls(const std::shared_ptr<ThreadControlWorld> &world) {
  std::vector<std::shared_ptr<shardc::rt::ControlPlane>> planes;
  for (uint32_t rank = 0; rank < world->ranks.size(); ++rank)
    planes.push_back(std::make_shared<ThreadControl>(world, rank));
  return planes;
}
inline std::vector<std::shared_ptr<shardc::rt::ControlPlane>> makeThreadControls(uint32_t size) {
  return makeThreadControls(std::make_shared<ThreadControlWorld>(size));
}

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_THREADCONTROL_H
