// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/shared/SegmentServer.h"

#include "runtime/control/Secret.h"
#include "runtime/support/Failure.h"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

namespace shardc::rt {

namespace {

/// How long the server waits for what a client has to say. Ranks say it at once.
constexpr int patienceMs = 200;
/// How often one that waits for an answer looks whether it is of use any more.
constexpr int sliceMs = 20;

struct Request {
  std::array<unsigned char, 16> token;
  uint32_t segment;
};

[[noreturn]] void failBySystem(const std::string &what) {
  throw Failure(SHARDRT_ABORTED, what + ": " + systemError(errno));
}

std::string socketName(const SegmentAddress &address) {
  return "shardrt-memory-" + hexOf(viewOf(address.name));
}

/// Whether `socket` has become ready for `events` before `ms` have passed.
bool ready(const Descriptor &socket, short events, int ms) {
  pollfd one{socket.get(), events, 0};
  return poll(&one, 1, ms) > 0;
}

} // namespace

SegmentServer::SegmentServer(std::function<Descriptor(uint32_t)> find) : find(std::move(find)) {
  randomBytes(where.name.data(), where.name.size());
  randomBytes(where.token.data(), where.token.size());
  listener = listenLocally(socketName(where));
  stop = Descriptor(eventfd(0, EFD_CLOEXEC));
  if (!listener || !stop)
    failBySystem("the socket by which ranks get each other's memory");
  thread = std::thread([this] { serve(); });
}

SegmentServer::~SegmentServer() {
  eventfd_write(stop.get(), 1);
  thread.join();
}

void SegmentServer::serve() {
  while (true) {
    pollfd both[] = {{listener.get(), POLLIN, 0}, {stop.get(), POLLIN, 0}};
    if (poll(both, 2, -1) < 0)
      continue;
    if (both[1].revents)
      return;
    if (Descriptor client(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)); client)
      answer(client);
    else if (errno == EMFILE || errno == ENFILE) // the client waits; its deadline ends that
      std::this_thread::sleep_for(std::chrono::milliseconds(sliceMs));
  }
}

void SegmentServer::answer(const Descriptor &client) const {
  Request request;
  if (!peerIsSameUser(client) || !ready(client, POLLIN, patienceMs) ||
      recv(client.get(), &request, sizeof request, MSG_DONTWAIT) != ssize_t(sizeof request) ||
      request.token != where.token)
    return; // who knows nothing is told nothing
  Descriptor segment = find(request.segment);
  char known = segment ? 1 : 0;
  iovec data{&known, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (segment) {
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    int fd = segment.get();
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  sendmsg(client.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

Descriptor fetchSegment(const SegmentAddress &address, uint32_t segment, Clock::time_point deadline,
                        const std::function<bool()> &givenUp) {
  auto goOn = [&] {
    if (givenUp())
      throw Failure(SHARDRT_ABORTED, "the world was given up");
    if (Clock::now() >= deadline)
      throw Failure(SHARDRT_TIMEOUT, "no answer until the deadline");
  };
  char known = 0;
  iovec data{&known, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  ssize_t got = -1;
  while (true) {
    Descriptor server;
    Clock::time_point begin = Clock::now();
    // EAGAIN: so many ask at once that this one has to wait.
    for (; !(server = connectLocally(socketName(address))); begin = Clock::now()) {
      if (errno != EAGAIN && errno != EINTR)
        failBySystem("its socket");
      goOn();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (!peerIsSameUser(server))
      throw Failure(SHARDRT_ABORTED, "its process belongs to another user");
    Request request{address.token, segment};
    bool sent =
        send(server.get(), &request, sizeof request, MSG_NOSIGNAL) == ssize_t(sizeof request);
    int error = errno;
    // On a busy machine this process may have had to wait for so long that the server took it for a
    // stranger who says nothing.
    bool tooSlow = Clock::now() - begin >= std::chrono::milliseconds(patienceMs);
    if (sent) {
      while (!ready(server, POLLIN, sliceMs))
        goOn();
      message = {};
      message.msg_iov = &data;
      message.msg_iovlen = 1;
      message.msg_control = space;
      message.msg_controllen = sizeof space;
      got = recvmsg(server.get(), &message, MSG_CMSG_CLOEXEC);
      error = errno;
    }
    if (got > 0)
      break;
    if (tooSlow) {
      goOn();
      continue;
    }
    errno = error;
    if (got < 0)
      failBySystem("its socket");
    break;
  }
  const cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (got != 1 || known != 1 || !header || header->cmsg_level != SOL_SOCKET ||
      header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int)))
    throw Failure(SHARDRT_ABORTED, "its process gave no memory");
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return Descriptor(fd);
}

} // namespace shardc::rt
