// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/shared/SharedWorld.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace shardc::rt {

namespace {

/// How long the reason may take after the news that a rank has given up: everybody has to end
/// within two seconds.
constexpr std::chrono::milliseconds reasonPatience(1000);
/// More segments of a rank than can be: each is at least as large as all before it.
constexpr uint32_t mostSegments = 64;

} // namespace

// ---- Where ranks are ----

void Board::Text::set(const char *name, const char *location) {
  size_t at = 0;
  auto add = [&](const char *text) {
    size_t count = std::min(std::strlen(text), sizeof bytes - 1 - at);
    std::memcpy(bytes + at, text, count);
    at += count;
  };
  add(name);
  if (location && *location) {
    add(" (");
    add(location);
    add(")");
  }
  bytes[at] = 0;
}

std::string Board::Text::str() const { return {bytes, strnlen(bytes, sizeof bytes)}; }

void Board::noteOp(const shardrt_op *now) {
  auto number = uint64_t(reinterpret_cast<uintptr_t>(now));
  OpText &known = texts[slotOf(number)];
  if (now && known.op.load(std::memory_order_relaxed) != number) {
    known.text.set(now->name ? now->name : "an unnamed op", now->location);
    known.op.store(number, std::memory_order_release);
  }
  op.store(number, std::memory_order_release);
}

void Board::noteCollective(const shardrt_collective *now) {
  if (now)
    collective.set(now->name ? now->name : kindName(now->kind), now->location);
  inCollective.store(now != nullptr, std::memory_order_release);
}

std::string Board::str() const {
  if (inCollective.load(std::memory_order_acquire))
    return "is in " + collective.str();
  uint64_t number = op.load(std::memory_order_acquire);
  if (number == 0)
    return "is not running";
  const OpText &known = texts[slotOf(number)];
  bool same = known.op.load(std::memory_order_acquire) == number;
  return "was last seen in " + (same ? known.text.str() : "an op");
}

// ---- Where groups meet ----

/// Everything in it is written by several processes: only atomics change after an entry is in the
/// list.
struct alignas(64) Meetings::Head {
  enum State : uint32_t { Alive, GivingUp, GivenUp };
  std::atomic<uint32_t> state{Alive};
  uint32_t worldSize = 0;
  // Why, once the state is GivenUp.
  uint32_t rank = 0;
  shardrt_status status = SHARDRT_OK;
  uint32_t reasonBytes = 0;
  char reason[4000];
  std::atomic<uint64_t> used{0};  ///< bytes
  std::atomic<uint64_t> first{0}; ///< offset of the newest entry; 0: none
};
/// Followed by a slot and then a rank for each member.
struct Meetings::Entry {
  explicit Entry(uint32_t members) : members(members), place(true) {}
  uint64_t next = 0; ///< offset; 0: the last
  const uint32_t members;
  alignas(64) MeetingPlace place;

  MeetingPlace::Slot *slots() { return reinterpret_cast<MeetingPlace::Slot *>(this + 1); }
  uint32_t *ranks() { return reinterpret_cast<uint32_t *>(slots() + members); }
};

uint64_t Meetings::boardsEnd(uint64_t worldSize) {
  return (sizeof(Head) + worldSize * sizeof(Board) + 63) / 64 * 64;
}

uint64_t Meetings::entryBytes(uint64_t members) {
  uint64_t bytes = sizeof(Entry) + members * (sizeof(MeetingPlace::Slot) + sizeof(uint32_t));
  return (bytes + 63) / 64 * 64;
}

Descriptor Meetings::make(uint32_t worldSize) {
  // Pages take memory only when they are used: room for some thousands of groups of everybody.
  Descriptor segment = makeSegment(boardsEnd(worldSize) + 4096 * entryBytes(worldSize));
  Mapping mapping = mapSegment(segment);
  Head &head = *new (mapping.data()) Head;
  head.worldSize = worldSize;
  head.used.store(boardsEnd(worldSize), std::memory_order_release);
  return segment;
}

Meetings::Meetings(Mapping mapping, uint32_t worldSize)
    : mapping(std::move(mapping)), worldSize(worldSize) {
  if (!this->mapping.has(0, boardsEnd(worldSize)) || head().worldSize != worldSize)
    throw Failure(SHARDRT_INTERNAL, "the memory in which ranks meet is of another world");
}

Meetings::Head &Meetings::head() const { return *reinterpret_cast<Head *>(mapping.data()); }

bool Meetings::givenUp() const {
  return head().state.load(std::memory_order_seq_cst) != Head::Alive;
}

void Meetings::giveUp(uint32_t rank, shardrt_status status, std::string_view reason) {
  uint32_t alive = Head::Alive;
  Head &here = head();
  if (!here.state.compare_exchange_strong(alive, Head::GivingUp, std::memory_order_seq_cst))
    return;
  here.rank = rank;
  here.status = status;
  here.reasonBytes = uint32_t(std::min(reason.size(), sizeof here.reason));
  std::memcpy(here.reason, reason.data(), here.reasonBytes);
  here.state.store(Head::GivenUp, std::memory_order_release);
}

std::optional<Meetings::Reason> Meetings::reason() const {
  const Head &here = head();
  if (here.state.load(std::memory_order_acquire) != Head::GivenUp)
    return std::nullopt;
  size_t bytes = std::min<size_t>(here.reasonBytes, sizeof here.reason);
  return Reason{here.rank, here.status, {here.reason, bytes}};
}

/// Zeros, as segments begin, are a rank that is not running.
Board &Meetings::board(uint32_t rank) const {
  return reinterpret_cast<Board *>(mapping.data() + sizeof(Head))[rank];
}

Meetings::Entry *Meetings::entryAt(uint64_t offset) const {
  if (offset % 64 != 0 || !mapping.has(offset, sizeof(Entry)))
    return nullptr;
  auto *entry = reinterpret_cast<Entry *>(mapping.data() + offset);
  return entry->members <= worldSize && mapping.has(offset, entryBytes(entry->members)) ? entry
                                                                                        : nullptr;
}

Meetings::Found Meetings::find(std::span<const uint32_t> members) {
  Entry *own = nullptr;
  uint64_t ownOffset = 0;
  uint64_t first = head().first.load(std::memory_order_acquire);
  while (true) {
    uint64_t steps = 0;
    for (uint64_t at = first; at != 0;) {
      Entry *entry = entryAt(at);
      if (!entry || ++steps > mapping.size() / sizeof(Entry))
        throw Failure(SHARDRT_INTERNAL, "the list of places where ranks meet is damaged");
      if (std::equal(members.begin(), members.end(), entry->ranks(),
                     entry->ranks() + entry->members))
        return {&entry->place, entry->slots()};
      at = entry->next;
    }
    if (!own) {
      uint64_t bytes = entryBytes(members.size());
      ownOffset = head().used.fetch_add(bytes, std::memory_order_relaxed);
      if (!mapping.has(ownOffset, bytes))
        throw Failure(SHARDRT_OUT_OF_MEMORY,
                      "there are too many groups of ranks for memory that processes share");
      own = new (mapping.data() + ownOffset) Entry(uint32_t(members.size()));
      for (size_t i = 0; i < members.size(); ++i) {
        new (own->slots() + i) MeetingPlace::Slot;
        own->ranks()[i] = members[i];
      }
    }
    own->next = first;
    // If another was faster, it may have made this very place.
    if (head().first.compare_exchange_strong(first, ownOffset, std::memory_order_acq_rel))
      return {&own->place, own->slots()};
  }
}

// ---- The world ----

SharedWorld::SharedWorld(std::shared_ptr<ControlPlane> plane, SharedWorldFacts known, Mapping place,
                         Sharing sharing)
    : MeetingWorld(plane->worldSize(), known.cores, sharing), control(std::move(plane)),
      facts(std::move(known)), meetings(std::move(place), size),
      board(meetings.board(control->rank())), segments(size) {
  control->onChange([heard = heard] {
    std::lock_guard lock(heard->mutex);
    for (MeetingPlace *one : heard->places)
      one->complete.wake();
  });
  control->answerWith([heard = heard](std::string_view question) {
    std::lock_guard lock(heard->mutex);
    return question.empty() ? heard->where.place() : std::string();
  });
}

SharedWorld::~SharedWorld() {
  control->onChange(nullptr);
  control->answerWith(nullptr);
  std::lock_guard lock(heard->mutex);
  heard->places.clear();
}

std::unique_ptr<MeetingGroup> SharedWorld::group(std::vector<uint32_t> members, uint32_t position) {
  Meetings::Found found = meetings.find(members);
  std::lock_guard lock(heard->mutex);
  heard->places.push_back(found.place);
  return std::make_unique<MeetingGroup>(std::move(members), position, *found.place, found.slots);
}

const Mapping &SharedWorld::segment(uint32_t rank, uint32_t number, Clock::time_point deadline) {
  std::vector<Mapping> &known = segments[rank];
  if (number < known.size() && known[number])
    return known[number];
  if (number >= mostSegments)
    throw Failure(SHARDRT_ABORTED, "its process named memory that it cannot have");
  if (number >= known.size())
    known.resize(number + 1);
  known[number] = mapSegment(
      fetchSegment(facts.addresses[rank], number, deadline, [this] { return givenUp(); }));
  return known[number];
}

bool SharedWorld::givenUp() const { return meetings.givenUp() || control->givenUp(); }

void SharedWorld::abort(shardrt_status status, const std::string &why) noexcept {
  meetings.giveUp(control->rank(), status, why);
  control->abort(status, why);
}

Failure SharedWorld::reason(const Activity &activity) const {
  std::string mine = activity.str() + ": given up because of ";
  for (Clock::time_point until = Clock::now() + reasonPatience; Clock::now() < until;
       std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    if (std::optional<Meetings::Reason> why = meetings.reason()) {
      if (why->rank == control->rank())
        return {why->status, why->text};
      return {why->status, mine + "rank " + std::to_string(why->rank) + ": " + why->text};
    }
    if (std::optional<Failure> why = control->failure())
      return {why->status, mine + why->message};
  }
  return {SHARDRT_ABORTED, mine + "another rank, which did not say why"};
}

void SharedWorld::fail(const MeetingGroup &group, const Activity &activity, shardrt_status status,
                       const std::string &why) {
  abort(status, activity.str() + ": " + why);
  failAborted(group, activity);
}

void SharedWorld::failAborted(const MeetingGroup &group, const Activity &activity) {
  Failure why = reason(activity);
  // A deadline and a disagreement concern everybody; other reasons are the failing rank's own.
  std::optional<Meetings::Reason> said = meetings.reason();
  if (why.status == SHARDRT_TIMEOUT || why.status == SHARDRT_MISMATCH ||
      (said && said->rank == control->rank()))
    throw why;
  std::vector<uint32_t> absent = waitedFor(group);
  if (!absent.empty())
    why.message += "; missing " + rankList(absent) + " (" + whereAre(absent) + ")";
  throw Failure(SHARDRT_ABORTED, why.message);
}

std::string SharedWorld::whyAbsent(uint32_t rank, uint64_t run) {
  std::string name = "rank " + std::to_string(rank);
  // Looked at first, as news of one rank come in order: who refuses a run may leave because of it.
  const bool left = control->left(rank).has_value();
  if (run != 0)
    if (std::optional<std::string> refusal = control->refused(rank, run))
      return name + " did not start this run: " + *refusal;
  return left ? name + " has left and cannot take part" : "";
}

std::string SharedWorld::whereAre(std::span<const uint32_t> which) {
  std::string text;
  for (uint32_t rank : which)
    text += (text.empty() ? "rank " : "; rank ") + std::to_string(rank) + " " +
            (control->left(rank) ? "has left" : meetings.board(rank).str());
  return text;
}

} // namespace shardc::rt
