// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/process/ProcessCommunicator.h"

#include "runtime/support/Fnv.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace shardc::rt {

namespace {

/// How long others have for an answer: they answer by a thread that does nothing else.
constexpr std::chrono::milliseconds answerTime(500);
/// A library may notice that a rank has gone before the control plane does.
constexpr std::chrono::milliseconds noticeTime(500);
constexpr std::chrono::seconds mostPatience(32);
/// Each question goes to all ranks: if all members of a large group asked at the same moment, there
/// would be no answers in time. They take turns while they wait, and the first one asks for all
/// when they give up.
constexpr std::chrono::milliseconds turnTime(20);
constexpr std::chrono::milliseconds questionTime = answerTime + std::chrono::milliseconds(100);

/// First letter of an answer about a collective.
constexpr char hasArrived = 'a', isElsewhere = 'e', hasNotArrived = 'n';

uint64_t keyOf(const std::vector<uint32_t> &members) {
  Fnv hash;
  for (uint32_t member : members)
    hash.add(member);
  return hash.value();
}

/// Numbers of the last collective that a rank began and ended in a group.
struct Progress {
  uint64_t begun = 0, ended = 0;
};
/// What an account (ProcessCommunicator::progress) says about the group.
Progress progressIn(const std::string &account, uint64_t key) {
  const char *at = account.c_str();
  uint64_t named = 0;
  Progress progress;
  int length = 0;
  while (std::sscanf(at, "%" SCNx64 " %" SCNu64 " %" SCNu64 "\n%n", &named, &progress.begun,
                     &progress.ended, &length) == 3) {
    if (named == key)
      return progress;
    at += length;
  }
  return {};
}

} // namespace

ProcessGroup::ProcessGroup(std::vector<uint32_t> members, uint32_t position)
    : Group(std::move(members), position), key(keyOf(this->members)) {}

ProcessCommunicator::ProcessCommunicator(std::shared_ptr<ControlPlane> controlPlane)
    : plane(std::move(controlPlane)) {
  listener->self = this;
  plane->answerWith([listener = listener](std::string_view question) {
    std::lock_guard lock(listener->mutex);
    return listener->self ? listener->self->answer(question) : std::string();
  });
  plane->onChange([listener = listener] {
    std::lock_guard lock(listener->mutex);
    if (listener->self)
      listener->self->changes.fetch_add(1, std::memory_order_release);
  });
}

ProcessCommunicator::~ProcessCommunicator() { detach(); }

void ProcessCommunicator::detach() noexcept {
  leave();
  plane->onChange(nullptr);
  plane->answerWith(nullptr);
  std::lock_guard lock(listener->mutex); // a call may have begun before
  listener->self = nullptr;
}

Group &ProcessCommunicator::group(std::span<const uint32_t> members) {
  std::vector<uint32_t> wanted(members.begin(), members.end());
  std::lock_guard lock(mutex);
  std::unique_ptr<ProcessGroup> &entry = groups[wanted];
  if (!entry) {
    auto position = uint32_t(std::find(wanted.begin(), wanted.end(), rank()) - wanted.begin());
    entry = std::make_unique<ProcessGroup>(std::move(wanted), position);
  }
  return *entry;
}

std::vector<std::string> ProcessCommunicator::exchange(const Topic &about, std::string_view mine,
                                                       Clock::time_point deadline) {
  struct Inside {
    Inside(ProcessCommunicator &self, const char *name) : self(self) {
      std::lock_guard lock(self.mutex);
      self.topic = name;
      ++self.exchangesBegun;
    }
    ~Inside() {
      std::lock_guard lock(self.mutex);
      self.topic = nullptr;
    }
    ProcessCommunicator &self;
  } inside(*this, about.name);
  std::vector<std::string> all = plane->exchange(about, mine, deadline);
  ++exchangesEnded;
  return all;
}

std::string ProcessCommunicator::absent(const Group &group, uint64_t run) {
  uint32_t now = changes.load(std::memory_order_acquire);
  if (now == presentChanges && run == presentRun)
    return "";
  for (uint32_t member : group.members) {
    std::string name = "rank " + std::to_string(member);
    if (member == rank())
      continue;
    // Looked at first, as news of one rank come in order: who refuses may leave because of it.
    const bool left = plane->left(member).has_value();
    if (std::optional<std::string> refusal = plane->refused(member, run); run != 0 && refusal)
      return name + " did not start this run: " + *refusal;
    if (left)
      return name + " has left and cannot take part";
  }
  if (group.size() == worldSize()) {
    presentChanges = now;
    presentRun = run;
  }
  return "";
}

void ProcessCommunicator::abort(shardrt_status status, const std::string &reason) noexcept {
  plane->abort(status, reason);
}
void ProcessCommunicator::refuse(uint64_t run, const std::string &reason) noexcept {
  plane->refuse(run, reason);
}
void ProcessCommunicator::leave() noexcept {
  if (!hasLeft.exchange(true))
    plane->leave(progress());
}

void ProcessCommunicator::notePosition(const shardrt_op *now) noexcept {
  op.store(now, std::memory_order_release);
  if (!now) // The last op's text may go away after this: nobody reads it any more then.
    std::lock_guard lock(mutex);
}

/// Lines of the key of a group and how many of its collectives this rank has begun and done.
std::string ProcessCommunicator::progress() {
  std::lock_guard lock(mutex);
  std::string text;
  for (const auto &[members, group] : groups) {
    char line[80];
    std::snprintf(line, sizeof line, "%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", group->key,
                  group->begun.load(std::memory_order_acquire),
                  group->ended.load(std::memory_order_acquire));
    text += line;
  }
  return text;
}

namespace {
std::string textOf(const shardrt_op &op) {
  std::string text = op.name ? op.name : "an unnamed op";
  return op.location && *op.location ? text + " (" + op.location + ")" : text;
}
} // namespace

/// Where this rank is; the mutex is held.
std::string ProcessCommunicator::place() const {
  if (collective)
    return "in " + describe(*collective);
  if (topic)
    return std::string("in ") + topic;
  const shardrt_op *now = op.load(std::memory_order_acquire);
  return now ? "in " + textOf(*now) : "not running";
}
std::string ProcessCommunicator::predicate() const {
  bool computes = !collective && !topic && op.load(std::memory_order_relaxed);
  return (computes ? "was last seen " : "is ") + place();
}

std::string ProcessCommunicator::answer(std::string_view question) {
  std::lock_guard lock(mutex);
  if (question.empty())
    return place();
  uint64_t key = 0, number = 0, exchanges = 0;
  std::sscanf(std::string(question).c_str(), "%" SCNx64 " %" SCNu64 " %" SCNu64, &key, &number,
              &exchanges);
  char state = topic && exchangesBegun > exchanges ? isElsewhere : hasNotArrived;
  for (const auto &[members, group] : groups)
    if (group->key == key && group->begun.load(std::memory_order_acquire) >= number)
      state = hasArrived;
  return state + predicate();
}

std::string ProcessCommunicator::whereIs(uint32_t member,
                                         const std::optional<std::string> &said) const {
  std::string name = "rank " + std::to_string(member);
  if (said && !said->empty())
    return name + " " + said->substr(1);
  if (plane->left(member))
    return name + " has left";
  name = plane->peers()[member].str(member) + " does not answer";
  std::optional<ControlPlane::LastSeen> seen = plane->lastSeen(member);
  if (!seen)
    return name;
  return name + "; " + secondsText(std::chrono::duration<double>(seen->ago).count()) +
         " ago it was " + seen->where;
}

std::string ProcessCommunicator::whoIsSilent() const {
  std::vector<std::optional<std::string>> answers = plane->ask("", answerTime);
  std::string text;
  for (uint32_t other = 0; other < worldSize(); ++other)
    if (other != rank() && !answers[other])
      text += (text.empty() ? " (" : "; ") + whereIs(other, std::nullopt);
  return text.empty() ? text : text + ")";
}

ProcessCommunicator::Flight::Flight(ProcessCommunicator &communicator, const CollectiveCall &call,
                                    Clock::time_point deadline)
    : communicator(communicator), call(call), group(static_cast<ProcessGroup &>(*call.group)),
      begin(Clock::now()), deadline(deadline),
      sequence(group.begun.load(std::memory_order_relaxed) + 1),
      nextQuestion(begin + std::chrono::seconds(1) + group.position * turnTime) {
  if (communicator.plane->givenUp())
    raiseGivenUp();
  std::lock_guard lock(communicator.mutex);
  communicator.collective = call.collective;
  group.begun.store(sequence, std::memory_order_release);
}

ProcessCommunicator::Flight::~Flight() {
  std::lock_guard lock(communicator.mutex);
  communicator.collective = nullptr;
}

bool ProcessCommunicator::Flight::mustStop() {
  if (found || communicator.plane->givenUp() || cannotCome())
    return true;
  Clock::time_point now = Clock::now();
  return now >= deadline || (now >= nextQuestion && isLost());
}

/// Whether a member has left, or refused this run.
bool ProcessCommunicator::Flight::cannotCome() {
  ProcessCommunicator &c = communicator;
  uint32_t changes = c.changes.load(std::memory_order_acquire);
  if (changes == c.quietChanges && call.run == c.quietRun)
    return false;
  bool quiet = true;
  for (uint32_t member = 0; member < c.worldSize(); ++member) {
    bool matters = member != c.rank() && std::find(group.members.begin(), group.members.end(),
                                                   member) != group.members.end();
    std::string name = "rank " + std::to_string(member);
    std::optional<std::string> account = c.plane->left(member), refusal;
    if (call.run != 0)
      refusal = c.plane->refused(member, call.run);
    quiet &= !account && !refusal;
    if (matters && refusal)
      found.emplace(SHARDRT_ABORTED, name + " did not start this run: " + *refusal);
    else if (matters && account && progressIn(*account, group.key).ended < sequence)
      found.emplace(SHARDRT_ABORTED, name + " has left and cannot take part");
    if (found)
      return true;
  }
  if (quiet) {
    c.quietChanges = changes;
    c.quietRun = call.run;
  }
  return false;
}

std::string ProcessCommunicator::Flight::question() const {
  char text[80];
  std::snprintf(text, sizeof text, "%" PRIx64 " %" PRIu64 " %" PRIu64, group.key, sequence,
                communicator.exchangesEnded);
  return text;
}

/// Whether a member waits for this rank somewhere else, so that both would wait for ever.
bool ProcessCommunicator::Flight::isLost() {
  std::vector<std::optional<std::string>> answers = communicator.plane->ask(question(), answerTime);
  for (uint32_t member : group.members)
    if (const auto &said = answers[member]; said && !said->empty() && (*said)[0] == isElsewhere)
      found.emplace(SHARDRT_MISMATCH, "ranks disagree: rank " + std::to_string(member) + " " +
                                          said->substr(1) + ", rank " +
                                          std::to_string(communicator.rank()) + " in a collective");
  patience = std::min(2 * patience, mostPatience);
  nextQuestion = Clock::now() + patience;
  return found.has_value();
}

void ProcessCommunicator::Flight::fail(shardrt_status otherwise, const std::string &reason) {
  for (Clock::time_point noticed = Clock::now() + noticeTime; !mustStop();) {
    if (Clock::now() >= noticed)
      raise(otherwise, reason);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (communicator.plane->givenUp())
    raiseGivenUp();
  if (found)
    raise(found->status, found->message);
  awaitSpeaker();
  if (communicator.plane->givenUp())
    raiseGivenUp();
  std::string text = lateness();
  if (communicator.plane->givenUp()) // by a member whose deadline has passed as well, say
    raiseGivenUp();
  raise(SHARDRT_TIMEOUT, text);
}

void ProcessCommunicator::Flight::disagree(const std::string &how) {
  raise(SHARDRT_MISMATCH, "ranks disagree: " + how);
}

void ProcessCommunicator::Flight::raise(shardrt_status status, const std::string &reason) {
  // A deadline and a disagreement concern all ranks; other reasons are one rank's own.
  bool shared = status == SHARDRT_TIMEOUT || status == SHARDRT_MISMATCH;
  std::string text = describe(*call.collective) + ": " + reason;
  communicator.plane->abort(shared ? status : SHARDRT_ABORTED, text);
  throw Failure(status, text);
}

void ProcessCommunicator::Flight::raiseGivenUp() {
  std::optional<Failure> why = communicator.plane->failure();
  shardrt_status status = why ? why->status : SHARDRT_ABORTED;
  bool shared = status == SHARDRT_TIMEOUT || status == SHARDRT_MISMATCH;
  throw Failure(shared ? status : SHARDRT_ABORTED, describe(*call.collective) +
                                                       ": given up because of " +
                                                       (why ? why->message : "another rank"));
}

/// The deadlines of all members pass at about the same time. The first one says who is missing,
/// unless it is the one.
void ProcessCommunicator::Flight::awaitSpeaker() {
  if (group.position == 0)
    return;
  for (Clock::time_point until = Clock::now() + questionTime;
       Clock::now() < until && !communicator.plane->givenUp();)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

std::string ProcessCommunicator::Flight::lateness() {
  std::string asked = question();
  std::vector<std::optional<std::string>> answers = communicator.plane->ask(asked, answerTime);
  std::vector<uint32_t> absent, present;
  for (uint32_t member : group.members) {
    const std::optional<std::string> &said = answers[member];
    std::optional<std::string> left;
    if (!said)
      left = communicator.plane->left(member);
    bool came = member == communicator.rank() ||
                (said && !said->empty() && (*said)[0] == hasArrived) ||
                (left && progressIn(*left, group.key).begun >= sequence);
    (came ? present : absent).push_back(member);
  }
  std::string text = "it did not complete within " +
                     secondsText(std::chrono::duration<double>(deadline - begin).count()) + ": ";
  if (absent.empty())
    return text + "all members have arrived, but their data has not";
  text += "missing " + rankList(absent) + ", arrived " + rankList(present) + " (";
  for (size_t i = 0; i < absent.size(); ++i)
    text += (i ? "; " : "") + communicator.whereIs(absent[i], answers[absent[i]]);
  return text + ")";
}

} // namespace shardc::rt
