// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the rank's own threads do with a plane.
#include "runtime/control/TcpControlPlane.h"

#include "runtime/control/Plane.h"

#include <charconv>
#include <cstdio>
#include <future>
#include <sys/resource.h>

namespace shardc::rt {

namespace {

/// For the answers of others, when an exchange did not complete: rank 0 asks for all ranks, as
/// there would be no answers in time if each of many asked all others at the same moment. Answers
/// come from threads that do nothing else, and are waited for no longer than until they are there;
/// on a machine that is busy that may take some tenths of a second.
constexpr std::chrono::milliseconds speakerPatience(900);
/// Until the others ask themselves, and how long: all of it within the two seconds in which
/// everybody has to end.
constexpr std::chrono::milliseconds speakerTime(1000);
constexpr std::chrono::milliseconds progressPatience(400);
/// Beyond rank 0's deadline: it can say who did not come.
constexpr std::chrono::milliseconds rankZeroFirst(1500);

/// How long rank 0 tells others that the world has failed, if it did not have to wait for them.
constexpr std::chrono::milliseconds lateTime(1000);

/// Rank 0 has a connection with every other rank.
void allowConnections(uint32_t worldSize) {
  rlimit limit{};
  rlim_t wanted = rlim_t(worldSize) + 1024;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
    return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit); // if it fails, accept says so
}

} // namespace

std::unique_ptr<ControlPlane> joinControlPlane(const ControlOptions &options) {
  Clock::time_point deadline = deadlineAfter(options.timeoutSeconds);
  Meeting meeting = prepareMeeting(options, deadline);
  if (options.rank == 0)
    allowConnections(options.worldSize);
  auto plane = std::make_unique<Plane>(options, std::move(meeting), deadline);
  plane->join();
  return plane;
}

void Plane::join() {
  std::optional<std::string> obstacle;
  Clock::time_point until = self == 0 ? joinBefore : joinBefore + rankZeroFirst;
  if (knowledge.awaitExchange(0, 0, until, obstacle))
    return;
  if (!knowledge.givenUp()) {
    // By the plane's thread, which knows how far it got.
    auto done = std::make_shared<std::promise<void>>();
    loop.post([this, done] {
      if (!joined)
        giveUp(SHARDRT_TIMEOUT, rendezvousFailure());
      done->set_value();
    });
    done->get_future().wait_for(std::chrono::seconds(10));
    if (knowledge.awaitExchange(0, 0, Clock::now(), obstacle))
      return; // in the last moment
  }
  // Those who come a little later hear why from rank 0.
  if (self == 0 && Clock::now() < joinBefore)
    toldAll.get_future().wait_for(lateTime);
  throw knowledge.failureOf("joining the world");
}

std::vector<std::string> Plane::exchange(const Topic &topic, std::string_view mine,
                                         Clock::time_point deadline) {
  Clock::time_point start = Clock::now();
  uint64_t number = ++begun;
  // The parts of all ranks, each with its rank and length, are one message in the end.
  if (mine.size() + 16 > (Link::mostBytes - 4096) / size)
    abort(SHARDRT_INVALID_ARGUMENT, std::string(topic.name) + ": " + std::to_string(mine.size()) +
                                        " bytes of each of " + std::to_string(size) +
                                        " ranks are more than the " +
                                        std::to_string(Link::mostBytes >> 20) +
                                        " MiB that ranks can tell each other at once");
  Gathered gathered{number, topic.name, topic.run, {{self, std::string(mine)}}};
  loop.post([this, gathered = std::move(gathered)]() mutable {
    if (!knowledge.givenUp())
      give(self, std::move(gathered), nullptr);
  });
  std::optional<std::string> obstacle;
  auto parts = knowledge.awaitExchange(number, topic.run, deadline, obstacle);
  if (!parts && !obstacle && !knowledge.givenUp() && self != 0)
    parts = knowledge.awaitExchange(number, topic.run, Clock::now() + speakerTime, obstacle);
  if (parts)
    return std::move(*parts);
  if (!knowledge.givenUp()) {
    std::string activity = std::string(topic.name) + ": ";
    if (obstacle) {
      abort(SHARDRT_ABORTED, activity + *obstacle);
    } else {
      double seconds = std::chrono::duration<double>(deadline - start).count();
      std::string reason = lateness(number, seconds);
      // The answers may have taken long enough for the result to come.
      parts = knowledge.awaitExchange(number, topic.run, Clock::now(), obstacle);
      if (parts)
        return std::move(*parts);
      abort(SHARDRT_TIMEOUT, activity + reason);
    }
  }
  throw knowledge.failureOf(topic.name);
}

std::string Plane::lateness(uint64_t number, double seconds) {
  auto answers =
      askAll(true, {}, Clock::now() + (self == 0 ? speakerPatience : progressPatience), true);
  std::vector<uint32_t> arrived, absent;
  std::string where;
  for (uint32_t r = 0; r < size; ++r) {
    std::optional<Progress> progress = answers[r] ? decode<Progress>(*answers[r]) : std::nullopt;
    if (r == self || (progress && progress->exchanges >= number)) {
      arrived.push_back(r);
      continue;
    }
    absent.push_back(r);
    std::string text = nameOf(r);
    if (std::optional<LastSeen> seen = lastSeen(r); progress) {
      text += progress->where.empty() ? " is elsewhere" : " is " + progress->where;
    } else {
      text += " does not answer";
      if (seen)
        text += ", and was " + seen->where + " " +
                secondsText(std::chrono::duration<double>(seen->ago).count()) + " ago";
    }
    where += (where.empty() ? "" : "; ") + text;
  }
  std::string text = "it did not complete within " + secondsText(seconds) + ": ";
  if (absent.empty())
    return text + "all ranks arrived, but the network is too slow";
  return text + "missing " + rankList(absent) + ", arrived " + rankList(arrived) + " (" + where +
         ")";
}

void Plane::abort(shardrt_status status, const std::string &reason) noexcept {
  try {
    GiveUp message{self, status, reason};
    if (knowledge.givenUp() || !knowledge.learn(message))
      return;
    loop.post([this, message = std::move(message)] {
      changed = true;
      broadcast(encode(message));
    });
  } catch (...) { // no memory: the others see this rank's connections close
  }
}

void Plane::refuse(uint64_t run, const std::string &reason) noexcept {
  try {
    Refusal message{self, begun.load(), run, reason};
    if (!knowledge.learn(message))
      return;
    loop.post([this, message = std::move(message)] {
      changed = true;
      broadcast(encode(message));
    });
  } catch (...) { // as above
  }
}

void Plane::leave(std::string_view account) noexcept {
  try {
    Leave message{self, begun.load(), std::string(account)};
    if (!knowledge.learn(message))
      return;
    auto sent = std::make_shared<std::promise<void>>();
    loop.post([this, message = std::move(message), sent] {
      changed = true;
      broadcast(encode(message));
      for (const std::unique_ptr<Link> &link : links)
        link->flush();
      sent->set_value();
    });
    // The process may end right after this, without more.
    sent->get_future().wait_for(std::chrono::seconds(1));
  } catch (...) { // as above
  }
}

void Plane::onChange(std::function<void()> function) {
  std::lock_guard lock(callbackMutex);
  wake = std::move(function);
}

void Plane::answerWith(Answer function) {
  {
    std::lock_guard lock(callbackMutex);
    answer = std::move(function);
  }
  loop.post([this] { beat(); });
}

std::vector<std::optional<std::string>> Plane::askAll(bool progress, std::string_view question,
                                                      Clock::time_point until, bool whileAlive) {
  Question message{self, ++questions, progress, std::string(question)};
  uint64_t number = message.number;
  knowledge.beginAsking(number);
  loop.post([this, message = std::move(message)] {
    answerQuestion(message, nullptr);
    broadcast(encode(message));
    asking = message;
  });
  Clock::time_point now = Clock::now();
  knowledge.awaitAnswers(now + (until - now) / 3, whileAlive);
  if (!(whileAlive && knowledge.givenUp()) && !knowledge.silent().empty()) {
    loop.post([this, number] { askDirectly(number); });
    knowledge.awaitAnswers(until, whileAlive);
  }
  loop.post([this] { asking.reset(); });
  return knowledge.takeAnswers();
}

std::vector<std::optional<std::string>> Plane::ask(std::string_view question,
                                                   std::chrono::nanoseconds patience) {
  try {
    return askAll(false, question, Clock::now() + patience, false);
  } catch (const std::exception &) { // no memory
    return std::vector<std::optional<std::string>>(size);
  }
}

ControlOptions controlOptions(const LaunchEnvironment &launch, const Variables &variables) {
  ControlOptions options;
  options.rank = launch.rank;
  options.worldSize = launch.worldSize;
  options.address = launch.masterAddress;
  options.ports = launch.masterPorts;
  options.job = launch.job;
  if (launch.localSize)
    options.oneHost = *launch.localSize == launch.worldSize;
  options.secret = variables("SHARDRT_SECRET").value_or("");
  options.interface = variables("SHARDRT_INTERFACE").value_or("");
  if (std::optional<std::string> text = variables("SHARDRT_LISTEN_FD"); text && launch.rank == 0) {
    const char *end = text->data() + text->size();
    auto [stop, error] = std::from_chars(text->data(), end, options.listenFd);
    if (error != std::errc() || stop != end || options.listenFd < 0)
      throw Failure(SHARDRT_INVALID_ARGUMENT,
                    "SHARDRT_LISTEN_FD is '" + *text + "', which is no file descriptor");
  }
  return options;
}

} // namespace shardc::rt
