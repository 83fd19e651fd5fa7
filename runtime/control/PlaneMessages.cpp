// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a plane does with the messages of others. They know the secret; what they send is checked
// all the same.
#include "runtime/control/Plane.h"

#include "runtime/control/Tree.h"

namespace shardc::rt {

namespace {

constexpr size_t longestName = 1024;
/// Until others are told that a rank was seen for the first time.
constexpr std::chrono::milliseconds firstBeatTime(200);

bool isStatus(int32_t status) { return status > SHARDRT_OK && status <= SHARDRT_INTERNAL; }

bool makesSense(const GiveUp &message) { return isStatus(message.status); }
bool makesSense(const Death &) { return true; }
bool makesSense(const Leave &) { return true; }
bool makesSense(const Refusal &) { return true; }

} // namespace

template <typename Message> bool Plane::handle(Link &link, std::string_view body) {
  std::optional<Message> message = decode<Message>(body);
  return message && on(link, std::move(*message));
}

template <typename News> bool Plane::onNews(Link &link, const News &news, bool urgent) {
  if (news.rank >= size || !makesSense(news))
    return false;
  if (!knowledge.learn(news))
    return true;
  changed = true;
  if (urgent)
    broadcast(encode(news), &link);
  else
    forward(encode(news), link);
  return true;
}

void Plane::received(Link &link, std::string_view body) {
  link.heard = Clock::now();
  link.spoke = true;
  uint8_t kind = body.empty() ? 0 : uint8_t(body[0]);
  std::string_view rest = body.substr(body.empty() ? 0 : 1);
  auto news = [&]<typename News>(bool urgent) {
    std::optional<News> message = decode<News>(rest);
    return message && onNews(link, *message, urgent);
  };
  auto understood = [&] {
    if (!link.peer) // has to say who it is
      return kind == Introduction::kind ? handle<Introduction>(link, rest)
             : kind == Greeting::kind   ? handle<Greeting>(link, rest)
                                        : false;
    switch (kind) {
    case Rejection::kind:
      return handle<Rejection>(link, rest);
    case Place::kind:
      return handle<Place>(link, rest);
    case Gathered::kind:
      return handle<Gathered>(link, rest);
    case Spread::kind:
      return handle<Spread>(link, rest);
    case GiveUp::kind:
      return news.operator()<GiveUp>(true);
    case Death::kind:
      return news.operator()<Death>(true);
    case Leave::kind:
      return news.operator()<Leave>(false);
    case Refusal::kind:
      return news.operator()<Refusal>(false);
    case Heartbeat::kind:
      return handle<Heartbeat>(link, rest);
    case Question::kind:
      return handle<Question>(link, rest);
    case Reply::kind:
      return handle<Reply>(link, rest);
    default:
      return false;
    }
  };
  if (!understood())
    link.end(LinkEnd::Forged, "it sent a message that makes no sense");
}

bool Plane::isNeighbour(const Link &link) const {
  auto found = link.peer ? neighbours.find(*link.peer) : neighbours.end();
  return found != neighbours.end() && found->second == &link;
}

// Of news that end the world every connection tells, also those that the other end can get from
// elsewhere: this rank may end right after it, and whoever sees a connection close without a reason
// takes that for a death, which would hide the reason.
void Plane::broadcast(const std::string &message, const Link *from) {
  for (const std::unique_ptr<Link> &link : links)
    if (link->peer && link.get() != from)
      link->send(message);
}

void Plane::forward(const std::string &message, const Link &from, bool urgent) {
  bool toAll = hub() == self;
  for (const std::unique_ptr<Link> &link : links) {
    if (!link->peer || link.get() == &from)
      continue;
    // A rank whose parent has gone hears from the hub alone.
    bool orphan = *link->peer != 0 && knowledge.gone(treeParent(*link->peer));
    if (isNeighbour(*link) || (toAll && (urgent || orphan)))
      link->send(message);
  }
}

void Plane::giveUp(shardrt_status status, const std::string &reason) {
  GiveUp message{self, status, reason};
  if (knowledge.givenUp() || !knowledge.learn(message))
    return;
  changed = true;
  broadcast(encode(message));
}

void Plane::noteTold(uint32_t rank) {
  if (told.insert(rank).second && told.size() == size - 1)
    toldAll.set_value();
}

bool Plane::on(Link &link, const Introduction &guest) {
  if (self != 0 || guest.peer.host.size() > longestName || guest.peer.machine.size() > longestName)
    return false;
  auto reject = [&](const Failure &failure) {
    log(SHARDRT_LOG_WARNING, failure.message);
    noteTold(guest.rank);
    link.send(encode(Rejection{failure.status, failure.message}));
    link.finish();
    return true;
  };
  if (std::optional<Failure> over = joined ? std::nullopt : knowledge.failure())
    return reject(*over);
  bool waiting = !guests->complete();
  if (std::optional<std::string> problem = guests->take(guest)) {
    reject({SHARDRT_MISMATCH, *problem});
    if (waiting) // whoever started the ranks made a mistake: there is no world to wait for
      giveUp(SHARDRT_MISMATCH, *problem);
    return true;
  }
  noteTold(guest.rank);
  link.peer = guest.rank;
  link.trust();
  if (introduction.peer.address == localAddress(listening.front()).any().host())
    introduction.peer.address = localAddress(link.socket()).host();
  if (guests->complete())
    sendPlaces();
  return true;
}

bool Plane::on(Link &link, const Greeting &greeting) {
  if (greeting.rank >= size || greeting.rank == self || greeting.worldSize != size)
    return false;
  link.peer = greeting.rank;
  link.trust();
  if (treeParent(greeting.rank) == self && greeting.rank != 0 &&
      !neighbours.contains(greeting.rank) && !joined)
    neighbours[greeting.rank] = &link;
  for (const std::string &message : knowledge.messages())
    link.send(message);
  if (stopping)
    link.finish();
  return true;
}

bool Plane::on(Link &link, const Rejection &rejection) {
  if (&link != hubLink || joined || !isStatus(rejection.status))
    return false;
  knowledge.learn(GiveUp{0, rejection.status, rejection.reason});
  return true;
}

bool Plane::on(Link &link, const Place &place) {
  if (&link != hubLink || self == 0 || placed || place.parent != treeParent(self))
    return false;
  placed = true;
  if (place.parent == 0) {
    neighbours[0] = &link;
    contributeSelf();
  } else {
    call(place.parent, place.address, place.port, Link::Use::Parent);
  }
  return true;
}

bool Plane::on(Link &link, Gathered gathered) {
  if (!isNeighbour(link) || *link.peer < self)
    return false;
  give(*link.peer, std::move(gathered), &link);
  return true;
}

/// Parts of this rank (`link` is null) or of a child's subtree.
void Plane::give(uint32_t from, Gathered gathered, Link *link) {
  bool disagree = false;
  if (std::optional<std::string> problem = treeExchange.add(from, std::move(gathered), disagree)) {
    if (disagree)
      giveUp(SHARDRT_MISMATCH, "ranks meet for different things: " + *problem);
    else if (link)
      link->end(LinkEnd::Forged, "it sent " + *problem);
    return;
  }
  if (!treeExchange.complete())
    return;
  if (self == 0) {
    if (!spreadDown(treeExchange.spread()))
      giveUp(SHARDRT_MISMATCH, "ranks introduced themselves in ways that make no sense");
    return;
  }
  auto parent = neighbours.find(treeParent(self));
  if (parent != neighbours.end())
    parent->second->send(encode(treeExchange.gathered()));
}

bool Plane::on(Link &link, const Spread &spread) {
  return self != 0 && isNeighbour(link) && *link.peer == treeParent(self) && spreadDown(spread);
}

bool Plane::spreadDown(const Spread &spread) {
  if (treeExchange.finish(spread))
    return false;
  if (!joined) {
    std::vector<Peer> found;
    for (uint32_t r = 0; r < size; ++r) {
      std::string_view part = spread.parts[r];
      if (part.empty())
        return false;
      std::optional<Introduction> other = decode<Introduction>(part.substr(1)); // behind its kind
      if (!other || other->rank != r)
        return false;
      found.push_back(other->peer);
      ports.push_back(other->port);
    }
    everybody = std::move(found);
    joined = true;
    beatAt = Clock::now();
  }
  std::string message = encode(spread);
  for (auto &[rank, link] : neighbours)
    if (rank > self)
      link->send(message);
  knowledge.deliver(spread);
  return true;
}

void Plane::beat() {
  if (!joined || knowledge.givenUp())
    return;
  std::string where = answerTo("");
  if (!where.empty())
    knowledge.learn(Sighting{self, 0, where});
  std::string all = encode(Heartbeat{knowledge.sightings(0)}),
              subtree = encode(Heartbeat{knowledge.sightings(self)}), nothing = encode(Heartbeat{});
  // A process that is stopped reads nothing. What waits for it must not fill its connection, which
  // the system would take for lost long before the deadline.
  Clock::time_point recently = Clock::now() - 3 * beatTime;
  for (auto &[rank, link] : neighbours)
    link->send(link->heard < recently ? nothing : rank > self ? all : subtree);
}

bool Plane::on(Link &link, const Heartbeat &heartbeat) {
  if (!isNeighbour(link))
    return false;
  for (const Sighting &sighting : heartbeat.sightings) {
    if (sighting.rank >= size)
      return false;
    if (sighting.rank != self && knowledge.learn(sighting) && beatAt)
      beatAt = std::min(*beatAt, Clock::now() + firstBeatTime);
  }
  if (*link.peer < self)
    beat(); // passes it on to the children
  return true;
}

std::string Plane::answerTo(const std::string &question) {
  std::lock_guard lock(callbackMutex);
  return answer ? answer(question) : "";
}

/// `link`: where it came from; null if this rank asks.
void Plane::answerQuestion(const Question &question, Link *link) {
  std::string text =
      question.progress ? encode(Progress{begun.load(), answerTo("")}) : answerTo(question.text);
  Reply reply{question.rank, question.number, self, std::move(text)};
  if (link)
    link->send(encode(reply));
  else
    knowledge.deliver(reply);
}

bool Plane::on(Link &link, const Question &question) {
  if (question.rank >= size)
    return false;
  Asked &last = asked[question.rank];
  if (question.number <= last.number || question.rank == self)
    return true;
  last = {question.number, &link};
  forward(encode(question), link, true);
  answerQuestion(question, &link);
  return true;
}

bool Plane::on(Link &link, const Reply &reply) {
  if (reply.asker >= size || reply.rank >= size)
    return false;
  const Asked &last = asked[reply.asker];
  if (reply.asker == self)
    knowledge.deliver(reply);
  else if (last.number == reply.number && last.way)
    last.way->send(encode(reply));
  return true;
}

} // namespace shardc::rt
