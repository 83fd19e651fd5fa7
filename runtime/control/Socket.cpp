// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/control/Socket.h"

#include "runtime/support/Failure.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>
#include <unistd.h>

namespace shardc::rt {

namespace {

/// After this time without an answer of the other host's kernel a connection is lost. (A stopped
/// process has a kernel that answers.)
constexpr int silenceSeconds = 30;

SocketAddress addressFrom(const sockaddr *address, socklen_t length) {
  SocketAddress out;
  std::memcpy(&out.storage, address, length);
  out.length = length;
  return out.withPort(0);
}

void setOption(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);
}

void tuneConnection(int fd) {
  setOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  setOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  setOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, silenceSeconds / 3);
  setOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, silenceSeconds / 6);
  setOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
  setOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, silenceSeconds * 1000);
}

Descriptor newSocket(int family) {
  return Descriptor(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool unixAddress(const std::string &name, sockaddr_un &address, socklen_t &length) {
  address = {};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return false;
  }
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  length = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return true;
}

} // namespace

Descriptor::~Descriptor() {
  if (fd >= 0)
    close(fd);
}

uint16_t SocketAddress::port() const {
  return ntohs(storage.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6 &>(storage).sin6_port
                   : reinterpret_cast<const sockaddr_in &>(storage).sin_port);
}

SocketAddress SocketAddress::withPort(uint16_t port) const {
  SocketAddress out = *this;
  if (storage.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6 &>(out.storage).sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in &>(out.storage).sin_port = htons(port);
  return out;
}

std::string SocketAddress::host() const {
  char text[NI_MAXHOST];
  if (length == 0 || getnameinfo(raw(), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST))
    return "an unknown address";
  return text;
}

std::string SocketAddress::str() const {
  std::string text = host();
  return (storage.ss_family == AF_INET6 ? "[" + text + "]" : text) + ":" + std::to_string(port());
}

bool SocketAddress::isOwn() const {
  // A datagram socket can be bound to an address of this host only, and disturbs nobody.
  Descriptor test(socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return bind(test.get(), withPort(0).raw(), length) == 0;
}

SocketAddress SocketAddress::any() const {
  SocketAddress out;
  out.storage.ss_family = storage.ss_family;
  out.length = length;
  return out.withPort(port());
}

namespace {

std::vector<SocketAddress> lookUp(const std::string &host, int flags, std::string &problem) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  int status = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  std::vector<SocketAddress> out;
  if (status != 0)
    problem = status == EAI_SYSTEM ? systemError(errno) : gai_strerror(status);
  for (addrinfo *i = status == 0 ? found : nullptr; i; i = i->ai_next)
    if (i->ai_family == AF_INET || i->ai_family == AF_INET6)
      out.push_back(addressFrom(i->ai_addr, i->ai_addrlen));
  if (status == 0)
    freeaddrinfo(found);
  return out;
}

} // namespace

std::vector<SocketAddress> resolve(const std::string &host, std::string &problem) {
  return lookUp(host, 0, problem);
}

std::vector<SocketAddress> numericAddress(const std::string &address, std::string &problem) {
  return lookUp(address, AI_NUMERICHOST, problem);
}

std::vector<SocketAddress> interfaceAddresses(const std::string &nameOrAddress,
                                              std::string &problem) {
  std::vector<SocketAddress> out;
  ifaddrs *all = nullptr;
  if (getifaddrs(&all) != 0) {
    problem = systemError(errno);
    return out;
  }
  std::string names;
  for (ifaddrs *i = all; i; i = i->ifa_next) {
    if (!i->ifa_addr || (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
      continue;
    bool old = i->ifa_addr->sa_family == AF_INET;
    SocketAddress address =
        addressFrom(i->ifa_addr, old ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    names += std::string(names.empty() ? "" : ", ") + i->ifa_name + " (" + address.host() + ")";
    if (nameOrAddress == i->ifa_name || nameOrAddress == address.host())
      out.insert(old ? out.begin() : out.end(), address);
  }
  freeifaddrs(all);
  if (out.empty())
    problem = "no network interface of this host has this name or address; there are: " + names;
  return out;
}

std::string systemError(int error) {
  char buffer[256];
  return strerror_r(error, buffer, sizeof buffer); // GNU's: returns the text
}

Descriptor listenAt(const SocketAddress &address) {
  Descriptor fd = newSocket(address.storage.ss_family);
  if (!fd)
    return fd;
  // The port of a world that has just ended can be used at once.
  setOption(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.storage.ss_family == AF_INET6)
    setOption(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (bind(fd.get(), address.raw(), address.length) != 0 || listen(fd.get(), SOMAXCONN) != 0) {
    int error = errno;
    fd = Descriptor();
    errno = error;
  }
  return fd;
}

Descriptor connectTo(const SocketAddress &address) {
  Descriptor fd = newSocket(address.storage.ss_family);
  if (!fd)
    return fd;
  tuneConnection(fd.get());
  if (connect(fd.get(), address.raw(), address.length) != 0 && errno != EINPROGRESS) {
    int error = errno;
    fd = Descriptor();
    errno = error;
  }
  return fd;
}

Descriptor acceptFrom(const Descriptor &listening) {
  Descriptor fd(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd)
    tuneConnection(fd.get());
  return fd;
}

Descriptor adoptListening(int fd) {
  int listens = 0;
  socklen_t length = sizeof listens;
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || !listens)
    throw Failure(SHARDRT_INVALID_ARGUMENT,
                  "file descriptor " + std::to_string(fd) + " is no socket that listens");
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  return Descriptor(fd);
}

SocketAddress localAddress(const Descriptor &socket) {
  SocketAddress out;
  out.length = sizeof out.storage;
  if (getsockname(socket.get(), out.raw(), &out.length) != 0)
    out.length = 0;
  return out;
}

SocketAddress remoteAddress(const Descriptor &socket) {
  SocketAddress out;
  out.length = sizeof out.storage;
  if (getpeername(socket.get(), out.raw(), &out.length) != 0)
    out.length = 0;
  return out;
}

int connectionError(const Descriptor &socket) {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

Descriptor listenLocally(const std::string &name) {
  sockaddr_un address;
  socklen_t length = 0;
  Descriptor fd = newSocket(AF_UNIX);
  if (!fd || !unixAddress(name, address, length) ||
      bind(fd.get(), reinterpret_cast<sockaddr *>(&address), length) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    int error = errno;
    fd = Descriptor();
    errno = error;
  }
  return fd;
}

Descriptor connectLocally(const std::string &name) {
  sockaddr_un address;
  socklen_t length = 0;
  Descriptor fd = newSocket(AF_UNIX);
  if (!fd || !unixAddress(name, address, length) ||
      connect(fd.get(), reinterpret_cast<sockaddr *>(&address), length) != 0) {
    int error = errno;
    fd = Descriptor();
    errno = error;
  }
  return fd;
}

bool peerIsSameUser(const Descriptor &socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         peer.uid == geteuid();
}

} // namespace shardc::rt
