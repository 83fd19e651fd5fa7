// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The turns of the plane's thread: what happened on sockets, what other threads want, what is due.
#include "runtime/control/Plane.h"

#include <algorithm>
#include <cerrno>

namespace shardc::rt {

namespace {
using std::chrono::milliseconds;

/// Connections whose other end has not said who it is: at most so many beside those of ranks that
/// are to come, and so long.
constexpr size_t mostStrangers = 256;
constexpr milliseconds strangerTime(10000);
/// How long the last messages may take to be read by the others.
constexpr milliseconds partingTime(400);
/// When no more connections can be taken.
constexpr milliseconds crowdedTime(500);
} // namespace

Plane::Plane(const ControlOptions &options, Meeting arrived, Clock::time_point deadline)
    : options(options), self(options.rank), size(options.worldSize), joinBefore(deadline),
      knowledge(self, size), meeting(std::move(arrived)), key(worldKey(meeting.secret)),
      introduction(introduceSelf(options)), treeExchange(self, size), asked(size) {
  listening = std::move(meeting.listening);
  thread = std::thread([this] { run(); });
}

Plane::~Plane() {
  loop.post([this] { stop(); });
  thread.join();
}

void Plane::log(int32_t level, const std::string &text) const {
  if (options.log)
    options.log(level, "control plane: " + text);
}

void Plane::run() {
  try {
    begin();
    while (!stopping || (!links.empty() && Clock::now() < *stopAt))
      turn();
  } catch (const std::exception &problem) {
    // Without this thread nobody hears of this rank: the others see its connections close.
    knowledge.learn(
        GiveUp{self, SHARDRT_INTERNAL, std::string("the control plane failed: ") + problem.what()});
    links.clear();
  }
}

void Plane::turn() {
  for (auto [tag, events] : loop.wait(nextTime())) {
    if (tag == &meeting.local) {
      acceptLocal();
      continue;
    }
    auto listens = std::find_if(listening.begin(), listening.end(),
                                [tag = tag](const Descriptor &fd) { return &fd == tag; });
    if (listens != listening.end()) {
      acceptAll(*listens);
      continue;
    }
    Link *link = static_cast<Link *>(tag);
    touched.push_back(link);
    link->handle(events);
  }
  loop.runPosted();
  doWhatIsDue();
  // Everything that this turn has to say to one rank is sent at once.
  for (size_t i = 0; i < touched.size(); ++i) {
    Link &link = *touched[i];
    link.flush();
    if (link.isOver() || link.interest() == link.armed)
      continue;
    link.armed = link.interest();
    loop.modify(link.socket(), &link, link.armed);
  }
  touched.clear();
  if (std::exchange(someOver, false))
    std::erase_if(links, [&](const std::unique_ptr<Link> &link) {
      if (link->isOver())
        loop.remove(link->socket());
      return link->isOver();
    });
  if (std::exchange(changed, false)) {
    std::lock_guard lock(callbackMutex);
    if (wake)
      wake();
  }
}

Clock::time_point Plane::nextTime() const {
  Clock::time_point next = Clock::now() + std::chrono::seconds(60);
  for (const auto &time : {searchAt, relinkAt, listenAgainAt, beatAt, stopAt})
    if (time)
      next = std::min(next, *time);
  if (hubLink && !hubLink->isOpen())
    next = std::min(next, hubLink->since() + timeToAnswer(*hubLink));
  for (const std::unique_ptr<Link> &link : links)
    if (!link->peer || link->isFinishing()) {
      next = std::min(next, link->since() + strangerTime);
      break; // the oldest
    }
  return next;
}

milliseconds Plane::timeToAnswer(const Link &link) const {
  bool searches = link.use == Link::Use::Hub && !link.isOpen() && search;
  return searches ? search->patience() : strangerTime;
}

void Plane::doWhatIsDue() {
  Clock::time_point now = Clock::now();
  auto due = [&](std::optional<Clock::time_point> &time) {
    if (!time || *time > now)
      return false;
    time.reset();
    return true;
  };
  if (stopping)
    return;
  if (due(searchAt))
    tryNextPlace();
  if (due(relinkAt))
    relink();
  if (due(beatAt)) {
    beat();
    beatAt = now + beatTime;
  }
  if (due(listenAgainAt))
    listenFor(EPOLLIN);
  dropStrangers(now);
}

void Plane::dropStrangers(Clock::time_point now) {
  size_t strangers = 0;
  for (const std::unique_ptr<Link> &link : links)
    strangers += !link->isOver() && !link->peer && link->use == Link::Use::Guest;
  for (size_t i = 0; i < links.size(); ++i) {
    Link &link = *links[i];
    bool waits = !link.isOver() && (!link.peer || link.isFinishing());
    // A parent may take its time, as long as the world is not complete.
    if (!waits || link.use == Link::Use::Parent)
      continue;
    bool guest = link.use == Link::Use::Guest;
    if (now >= link.since() + timeToAnswer(link))
      link.end(LinkEnd::Lost, "it did not answer in time");
    else if (guest && strangers > mostStrangers + (self == 0 && !joined ? size : 0))
      link.end(LinkEnd::Lost, "there are too many connections of strangers");
    else
      continue;
    strangers -= guest;
  }
}

Link &Plane::addLink(Descriptor socket, Handshake::Side side, Link::Use use) {
  LinkOwner &owner = *this;
  links.push_back(std::make_unique<Link>(std::move(socket), side, key, owner));
  Link &link = *links.back();
  link.use = use;
  link.armed = link.interest();
  loop.add(link.socket(), &link, link.armed);
  return link;
}

void Plane::acceptAll(const Descriptor &fd) {
  for (size_t i = 0; i < mostStrangers; ++i) {
    Descriptor socket = acceptFrom(fd);
    if (socket) {
      addLink(std::move(socket), Handshake::Side::Callee, Link::Use::Guest);
      continue;
    }
    pauseIfCrowded();
    return;
  }
}

void Plane::pauseIfCrowded() {
  if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM)
    return;
  log(SHARDRT_LOG_WARNING, "a connection cannot be taken: " + systemError(errno));
  listenFor(0);
  listenAgainAt = Clock::now() + crowdedTime;
}

void Plane::listenFor(uint32_t events) {
  for (const Descriptor &each : listening)
    loop.modify(each, const_cast<Descriptor *>(&each), events);
  if (meeting.local)
    loop.modify(meeting.local, &meeting.local, events);
}

void Plane::acceptLocal() {
  for (;;) {
    Descriptor socket = acceptFrom(meeting.local);
    if (!socket) {
      pauseIfCrowded();
      return;
    }
    if (peerIsSameUser(socket))
      // A few hundred bytes, which fit into the buffer of a new socket.
      send(socket.get(), meeting.note.data(), meeting.note.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    else
      log(SHARDRT_LOG_WARNING, "a process of another user asked for the secret, and got nothing");
  }
}

void Plane::stop() {
  stopping = true;
  stopAt = Clock::now() + partingTime;
  for (const Descriptor &fd : listening)
    loop.remove(fd);
  listening.clear();
  if (meeting.local)
    loop.remove(meeting.local);
  for (size_t i = 0; i < links.size(); ++i) {
    Link &link = *links[i];
    // Ranks that call this one, or are called to be asked, hear why it ends as soon as they can:
    // they would take a connection that closes without a word for a death.
    bool hears = (link.use == Link::Use::Guest && !link.peer) ||
                 (link.use == Link::Use::Aside && !link.isOpen());
    if (hears && joined)
      continue;
    if (link.isOpen())
      link.finish();
    else
      link.end(LinkEnd::Closed, "this rank has ended");
  }
}

} // namespace shardc::rt
