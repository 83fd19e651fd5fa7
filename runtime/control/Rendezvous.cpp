// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/control/Rendezvous.h"

#include "runtime/control/Secret.h"

#include <cerrno>
#include <fstream>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace shardc::rt {

namespace {

constexpr std::chrono::milliseconds longestNap(200);
constexpr std::chrono::milliseconds longestAnswer(10000);

[[noreturn]] void invalid(const std::string &text) {
  throw Failure(SHARDRT_INVALID_ARGUMENT, "the control plane: " + text);
}

/// What rank 0 tells processes of the same user on its host. Without a secret: it was given one,
/// and whoever asks lacks it.
struct LocalNote {
  std::string secret, host;
  uint16_t port = 0;
  void fields(auto &f) { f(secret, host, port); }
};

/// No other user's processes, and no other world of this one's, use the name.
std::string localName(const std::string &job) {
  return "shardrt-" + std::to_string(geteuid()) + "-" + hexOf(viewOf(worldKey(job))).substr(0, 32);
}

/// Sleeps a little longer each time, while other processes do their part.
void sleepFor(std::chrono::milliseconds &time, Clock::time_point deadline) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  poll(nullptr, 0, int(std::max<int64_t>(0, std::min(time, left).count())));
  time = std::min(time * 2, longestNap);
}

constexpr const char *needsSecret =
    "ranks on several hosts need a secret: set SHARDRT_SECRET to the same random text (16 "
    "characters or more) for all ranks";

void check(const ControlOptions &options) {
  if (options.worldSize == 0 || options.rank >= options.worldSize)
    invalid("there is no rank " + std::to_string(options.rank) + " in a world of " +
            std::to_string(options.worldSize));
  if (!options.secret.empty() && options.secret.size() < shortestSecret)
    invalid("the secret has " + std::to_string(options.secret.size()) +
            " characters, and anybody could guess it; it must have at least " +
            std::to_string(shortestSecret));
  if (!options.address.empty() && options.ports.empty() && options.listenFd < 0)
    invalid("an address of rank 0 (" + options.address + ") without a port");
  if (options.job.empty() && (options.address.empty() || options.secret.empty()))
    invalid("neither an address of rank 0 with a secret, nor a name of the job by which ranks of "
            "one host find each other");
  if (options.secret.empty() && options.oneHost == false)
    invalid(needsSecret);
}

/// Looks the host up until it is known: names of containers may come later than the containers.
std::vector<SocketAddress> resolveUntil(const std::string &host, Clock::time_point deadline) {
  std::chrono::milliseconds time(20);
  for (;;) {
    std::string problem;
    std::vector<SocketAddress> found = resolve(host, problem);
    if (!found.empty())
      return found;
    if (Clock::now() >= deadline)
      throw Failure(SHARDRT_TIMEOUT,
                    "the address of rank 0, " + host + ", cannot be looked up: " + problem);
    sleepFor(time, deadline);
  }
}

std::vector<SocketAddress> loopback() {
  std::string problem;
  std::vector<SocketAddress> found = resolve("127.0.0.1", problem);
  if (found.empty())
    throw Failure(SHARDRT_INTERNAL, "this host has no loopback address: " + problem);
  return found;
}

/// Listens at all of these addresses, with the first port of the list that is free.
std::vector<Descriptor> listenAtOneOf(const std::vector<SocketAddress> &addresses,
                                      const std::vector<uint16_t> &ports) {
  std::string problems;
  for (uint16_t port : ports) {
    std::vector<Descriptor> out;
    for (const SocketAddress &address : addresses) {
      Descriptor socket = listenAt(address.withPort(port));
      // The host may be reached by an address that it does not know of.
      if (!socket && errno == EADDRNOTAVAIL)
        socket = listenAt(address.any().withPort(port));
      if (socket)
        out.push_back(std::move(socket));
      else
        problems += (problems.empty() ? "" : "; ") + address.withPort(port).str() + ": " +
                    systemError(errno);
    }
    if (!out.empty())
      return out;
  }
  throw Failure(SHARDRT_INVALID_ARGUMENT,
                "the control plane: rank 0 cannot listen at any of its addresses: " + problems);
}

void hostMeeting(const ControlOptions &options, Meeting &meeting, bool local,
                 Clock::time_point deadline) {
  if (options.listenFd >= 0) {
    meeting.listening.push_back(adoptListening(options.listenFd));
  } else if (local) {
    meeting.listening =
        listenAtOneOf(meeting.interface.empty() ? loopback() : meeting.interface, {0});
  } else {
    meeting.listening = listenAtOneOf(
        meeting.interface.empty() ? resolveUntil(options.address, deadline) : meeting.interface,
        options.ports);
  }
  if (local && meeting.secret.empty())
    meeting.secret = makeSecret();
  SocketAddress at = localAddress(meeting.listening.front());
  meeting.note = encode(LocalNote{local ? meeting.secret : "", at.host(), at.port()});
  if (!options.job.empty())
    meeting.local = listenLocally(localName(options.job));
  if (local && !meeting.local)
    invalid("rank 0 of the job '" + options.job + "' cannot wait for the others on this host: " +
            (errno == EADDRINUSE ? "another process is rank 0 of a job of this name"
                                 : systemError(errno)));
}

/// Asks rank 0 on this host for its note. Nothing if it is not there (yet).
std::optional<LocalNote> askLocally(const std::string &name, Clock::time_point deadline) {
  Descriptor socket = connectLocally(name);
  if (!socket)
    return std::nullopt;
  if (!peerIsSameUser(socket))
    throw Failure(SHARDRT_INVALID_ARGUMENT,
                  "the control plane: a process of another user has taken the name by which ranks "
                  "of this job find each other");
  std::string text;
  for (char bytes[4096];;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wait{socket.get(), POLLIN, 0};
    if (left.count() <= 0 || poll(&wait, 1, int(std::min<int64_t>(left.count(), 1000000))) <= 0)
      return std::nullopt;
    ssize_t count = recv(socket.get(), bytes, sizeof bytes, 0);
    if (count <= 0)
      return count == 0 ? decode<LocalNote>(text) : std::nullopt;
    text.append(bytes, size_t(count));
  }
}

void findLocally(const ControlOptions &options, Meeting &meeting, Clock::time_point deadline) {
  std::string name = localName(options.job);
  std::chrono::milliseconds time(2);
  for (;;) {
    if (std::optional<LocalNote> note = askLocally(name, deadline)) {
      if (note->secret.empty())
        invalid("rank 0 of the job '" + options.job +
                "' has SHARDRT_SECRET, and this rank has not: set it to the same text for all "
                "ranks");
      std::string problem;
      for (const SocketAddress &address : resolve(note->host, problem))
        meeting.places.push_back(address.withPort(note->port));
      if (meeting.secret.empty())
        meeting.secret = note->secret;
      return;
    }
    if (Clock::now() >= deadline)
      throw Failure(SHARDRT_TIMEOUT,
                    "rank 0 of the job '" + options.job + "' is not on this host, or has not come" +
                        (options.secret.empty() ? std::string("; ") + needsSecret : ""));
    sleepFor(time, deadline);
  }
}

std::string firstLine(const char *file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string nameSpace(const char *name) {
  char text[64] = {};
  ssize_t count = readlink((std::string("/proc/self/ns/") + name).c_str(), text, sizeof text - 1);
  return count > 0 ? std::string(text, size_t(count)) : "";
}

} // namespace

Guests::Guests(Introduction self) : guests(self.worldSize) { guests[0] = std::move(self); }

std::optional<std::string> Guests::take(const Introduction &guest) {
  std::string name = guest.peer.str(guest.rank);
  if (guest.worldSize != guests.size())
    return name + " has a world of " + std::to_string(guest.worldSize) + " ranks, rank 0 one of " +
           std::to_string(guests.size());
  if (guest.rank >= guests.size())
    return name + " is not in a world of " + std::to_string(guests.size()) + " ranks";
  std::optional<Introduction> &place = guests[guest.rank];
  if (place)
    return "two processes are rank " + std::to_string(guest.rank) + ": " +
           place->peer.str(guest.rank) + " and " + name;
  place = guest;
  ++count;
  return std::nullopt;
}

std::vector<uint32_t> Guests::missing() const {
  std::vector<uint32_t> out;
  for (uint32_t r = 0; r < guests.size(); ++r)
    if (!guests[r])
      out.push_back(r);
  return out;
}

std::optional<SocketAddress> Search::next() {
  if (at == places.size())
    return std::nullopt;
  return places[at++];
}

std::chrono::milliseconds Search::pause() {
  at = 0;
  answerTime = std::min(answerTime * 2, longestAnswer);
  return std::exchange(nap, std::min(nap * 2, longestNap));
}

std::chrono::milliseconds Search::patience() const {
  return places.size() > 1 ? answerTime : longestAnswer;
}

void Search::note(const std::string &reason, bool answered) {
  Reason &known = reasons[at - 1];
  if (answered || !known.answered)
    known = {reason, answered};
}

std::string Search::str() const {
  std::string text;
  for (size_t i = 0; i < places.size(); ++i)
    text += (i ? "; " : "") + places[i].str() + ": " + reasons[i].text;
  return text;
}

Meeting prepareMeeting(const ControlOptions &options, Clock::time_point deadline) {
  check(options);
  Meeting meeting;
  meeting.secret = options.secret;
  if (!options.interface.empty()) {
    std::string problem;
    meeting.interface = interfaceAddresses(options.interface, problem);
    if (meeting.interface.empty())
      invalid("SHARDRT_INTERFACE is '" + options.interface + "': " + problem);
    meeting.interface.resize(1);
  }
  if (options.worldSize == 1)
    return meeting;
  bool local = options.address.empty() || options.secret.empty();
  if (options.rank == 0) {
    hostMeeting(options, meeting, local, deadline);
    return meeting;
  }
  if (!options.address.empty()) {
    std::vector<SocketAddress> addresses = resolveUntil(options.address, deadline);
    bool own = std::any_of(addresses.begin(), addresses.end(),
                           [](const SocketAddress &address) { return address.isOwn(); });
    if (options.secret.empty() && !own)
      invalid("rank 0 is on another host (" + options.address + "); " + needsSecret);
    for (uint16_t port : local ? std::vector<uint16_t>() : options.ports)
      for (const SocketAddress &address : addresses)
        meeting.places.push_back(address.withPort(port));
  }
  if (local)
    findLocally(options, meeting, deadline);
  return meeting;
}

Introduction introduceSelf(const ControlOptions &options) {
  Introduction self;
  self.rank = options.rank;
  self.worldSize = options.worldSize;
  char host[256] = {};
  self.peer.host = gethostname(host, sizeof host - 1) == 0 ? host : "unknown";
  self.peer.pid = getpid();
  // Memory can be shared on one host, between processes of one user that see the same files and
  // sockets. Those of different containers do not.
  struct stat memory{};
  bool known = stat("/dev/shm", &memory) == 0;
  self.peer.machine = firstLine("/proc/sys/kernel/random/boot_id") + " " + nameSpace("net") + " " +
                      nameSpace("ipc") + " " + nameSpace("pid") + " " +
                      (known ? std::to_string(memory.st_dev) : "") + " " +
                      std::to_string(geteuid());
  return self;
}

} // namespace shardc::rt
