// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a plane gets its connections and what it does when it loses one.
#include "runtime/control/Plane.h"

#include "runtime/control/Tree.h"

#include <algorithm>
#include <cerrno>

namespace shardc::rt {

namespace {
/// After the hub has gone. When all ranks end at about the same time, nobody needs another one.
constexpr std::chrono::milliseconds relinkTime(500);
/// Ranks that are called to ask them.
constexpr size_t mostAsked = 16;
} // namespace

void Plane::begin() {
  for (const Descriptor &fd : listening)
    loop.add(fd, const_cast<Descriptor *>(&fd), EPOLLIN);
  if (meeting.local)
    loop.add(meeting.local, &meeting.local, EPOLLIN);
  if (self != 0) {
    search.emplace(meeting.places);
    return tryNextPlace();
  }
  if (!listening.empty()) {
    SocketAddress at = localAddress(listening.front());
    introduction.port = at.port();
    introduction.peer.address = at.host();
  } else {
    introduction.peer.address = "127.0.0.1";
  }
  guests.emplace(introduction);
  if (guests->complete())
    contributeSelf();
}

void Plane::tryNextPlace() {
  while (std::optional<SocketAddress> place = search->next()) {
    Descriptor socket = connectTo(*place);
    if (!socket) {
      search->note(systemError(errno), false);
      continue;
    }
    hubLink = &addLink(std::move(socket), Handshake::Side::Caller, Link::Use::Hub);
    return;
  }
  if (std::exchange(met, false)) {
    // It was there, and nobody listens any more.
    changed = true;
    knowledge.learn(Death{0, "rank 0 ended before all ranks were there"});
    return;
  }
  searchAt = Clock::now() + search->pause();
}

void Plane::opened(Link &link) {
  switch (link.use) {
  case Link::Use::Guest:
    return; // speaks first
  case Link::Use::Hub:
    return introduce(link);
  case Link::Use::Parent:
  case Link::Use::Detour:
  case Link::Use::Aside:
    link.trust();
    link.send(encode(Greeting{self, size}));
    if (link.use == Link::Use::Parent) {
      neighbours[*link.peer] = &link;
      return contributeSelf();
    }
    for (const std::string &message : knowledge.messages())
      link.send(message);
    if (link.use == Link::Use::Detour)
      hubLink = &link;
    else if (asking)
      link.send(encode(*asking));
    if (stopping)
      link.finish();
  }
}

void Plane::introduce(Link &hub) {
  // Others reach this rank where it reaches rank 0, or where it was told to listen.
  SocketAddress here = localAddress(hub.socket());
  SocketAddress at = (meeting.interface.empty() ? here : meeting.interface.front()).withPort(0);
  if (listening.empty()) {
    listening.push_back(listenAt(at));
    if (!listening.front()) {
      listening.clear();
      return giveUp(SHARDRT_INTERNAL,
                    "it cannot listen at " + at.host() + ": " + systemError(errno));
    }
    loop.add(listening.front(), &listening.front(), EPOLLIN);
  }
  introduction.peer.address = at.host();
  introduction.port = localAddress(listening.front()).port();
  met = true;
  hub.peer = 0;
  hub.trust();
  hub.send(encode(introduction));
}

/// Rank 0, when all are there.
void Plane::sendPlaces() {
  for (const std::unique_ptr<Link> &link : links) {
    if (!link->peer || link->isOver() || link->isFinishing())
      continue;
    uint32_t parent = treeParent(*link->peer);
    const Introduction &host = *guests->of(parent);
    link->send(encode(Place{parent, host.peer.address, host.port}));
    if (parent == 0)
      neighbours[*link->peer] = link.get();
  }
  contributeSelf();
}

/// The first exchange tells all ranks of all others; it needs the connections of the tree.
void Plane::contributeSelf() {
  give(self, Gathered{0, "the start", 0, {{self, encode(introduction)}}}, nullptr);
}

void Plane::call(uint32_t rank, const std::string &address, uint16_t port, Link::Use use) {
  std::string problem;
  // Numeric, so that nobody is asked who might not answer.
  std::vector<SocketAddress> found = numericAddress(address, problem);
  Descriptor socket;
  if (!found.empty()) {
    socket = connectTo(found.front().withPort(port));
    if (!socket)
      problem = systemError(errno);
  }
  if (socket) {
    addLink(std::move(socket), Handshake::Side::Caller, use).peer = rank;
    return;
  }
  if (use == Link::Use::Parent)
    return giveUp(SHARDRT_ABORTED, "it cannot reach rank " + std::to_string(rank) + " at " +
                                       address + ":" + std::to_string(port) + ": " + problem);
  if (use == Link::Use::Detour) {
    unreachable.insert(rank);
    relinkAt = Clock::now();
  }
}

void Plane::closed(Link &link, LinkEnd end, const std::string &reason) {
  someOver = true;
  for (Asked &each : asked)
    if (each.way == &link)
      each.way = nullptr;
  if (hubLink == &link)
    hubLink = nullptr;
  if (link.peer && neighbours.contains(*link.peer) && neighbours[*link.peer] == &link)
    neighbours.erase(*link.peer);
  if (stopping || link.isFinishing())
    return;
  // Rank 0 may have had to make room before it knew who this is: it is called again.
  if (link.use == Link::Use::Hub && link.isOpen() && !placed && !knowledge.givenUp()) {
    search->note(reason, false);
    searchAt = Clock::now() + search->pause();
    return;
  }
  if (!link.isOpen() && link.use != Link::Use::Guest)
    return callFailed(link, end, reason);
  if (!link.peer)
    return noteStranger(link, end, reason);
  // Who is called aside may end, as others do, before it has said why: it is not more dead than one
  // that cannot be called any more. Those whom it has told why, or who see it die, say so.
  if (link.use == Link::Use::Aside && !link.spoke)
    return;
  lost(*link.peer, end, reason);
}

/// A connection that this rank wanted did not come about.
void Plane::callFailed(Link &link, LinkEnd end, const std::string &reason) {
  switch (link.use) {
  case Link::Use::Guest:
  case Link::Use::Aside:
    return;
  case Link::Use::Hub:
    search->note(reason, end != LinkEnd::Closed && end != LinkEnd::Lost);
    searchAt = Clock::now(); // the next place, in the next turn
    return;
  case Link::Use::Parent:
    return giveUp(SHARDRT_ABORTED, "it cannot reach rank " + std::to_string(*link.peer) + " at " +
                                       link.remote() + ": " + reason);
  case Link::Use::Detour:
    unreachable.insert(*link.peer);
    relinkAt = Clock::now();
  }
}

void Plane::noteStranger(const Link &link, LinkEnd end, const std::string &reason) {
  constexpr uint32_t told = 5;
  std::string text = "a connection from " + link.remote() + " came to nothing: " + reason;
  if (end == LinkEnd::Closed || end == LinkEnd::Lost)
    return log(SHARDRT_LOG_DEBUG, text);
  if (end != LinkEnd::Denied)
    return log(end == LinkEnd::Version ? SHARDRT_LOG_WARNING : SHARDRT_LOG_INFO, text);
  lastDenied = link.remote();
  if (++denied <= told)
    log(SHARDRT_LOG_WARNING, text + (denied == told ? "; further ones are not mentioned" : ""));
}

std::string Plane::nameOf(uint32_t rank) const {
  if (rank < everybody.size())
    return everybody[rank].str(rank);
  if (guests && guests->of(rank))
    return guests->of(rank)->peer.str(rank);
  return "rank " + std::to_string(rank);
}

void Plane::lost(uint32_t rank, LinkEnd end, const std::string &reason) {
  if (joined)
    relinkAt = Clock::now() + relinkTime;
  if (knowledge.left(rank))
    return;
  std::string text = nameOf(rank);
  if (end == LinkEnd::Lost && reason != systemError(ECONNRESET))
    text += " cannot be reached any more: " + reason;
  else if (end == LinkEnd::Forged)
    text += " was cut off: " + reason;
  else
    text +=
        joined ? " has died: its connections were closed" : " ended before all ranks were there";
  Death death{rank, text};
  changed = true;
  if (knowledge.learn(death))
    broadcast(encode(death));
}

/// A question did not come to these ranks, or their answers not back, on the ways that there are.
void Plane::askDirectly(uint64_t number) {
  if (!asking || asking->number != number)
    return;
  std::vector<uint32_t> called, silent = knowledge.silent();
  // A network that has come apart leaves those of this host; a few ranks are enough to find others.
  for (bool here : {true, false})
    for (uint32_t rank : silent)
      if ((everybody[rank].machine == everybody[self].machine) == here)
        called.push_back(rank);
  called.resize(std::min(called.size(), mostAsked));
  for (uint32_t rank : called)
    call(rank, everybody[rank].address, ports[rank], Link::Use::Aside);
}

uint32_t Plane::hub() const {
  for (uint32_t r = 0; r < self; ++r)
    if (!knowledge.gone(r) && !unreachable.contains(r))
      return r;
  return self;
}

void Plane::relink() {
  uint32_t wanted = hub();
  if (wanted == self || hubLink || !joined)
    return;
  auto near = neighbours.find(wanted);
  if (near != neighbours.end()) {
    hubLink = near->second;
    return;
  }
  call(wanted, everybody[wanted].address, ports[wanted], Link::Use::Detour);
}

std::string Plane::rendezvousFailure() const {
  std::string seconds = secondsText(options.timeoutSeconds);
  if (self != 0) {
    if (!placed && !(hubLink && hubLink->isOpen()))
      return "rank 0 did not answer within " + seconds + " (" + search->str() + ")" +
             (options.secret.empty() ? "" : "; it listens there only if it has SHARDRT_SECRET too");
    return "rank 0 did not start the world within " + seconds;
  }
  std::vector<uint32_t> missing = guests->complete() ? treeExchange.missing() : guests->missing();
  std::string text = rankList(missing) + " did not come within " + seconds;
  if (guests->complete())
    text = rankList(missing) + " came but could not reach each other within " + seconds;
  if (!listening.empty())
    text += "; rank 0 waits at " + localAddress(listening.front()).str();
  if (options.secret.empty() && options.oneHost != true)
    text += ", which ranks of other hosts cannot reach: they need SHARDRT_SECRET";
  else if (options.secret.empty() && !options.address.empty())
    text += ", for ranks that have no SHARDRT_SECRET, as it has none";
  if (denied > 0)
    text += "; " + std::to_string(denied) + " connections knew another secret, the last one from " +
            lastDenied;
  return text;
}

} // namespace shardc::rt
