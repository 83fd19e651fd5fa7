// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sockets: all of them are closed on exec and never block.
#ifndef SHARDC_RUNTIME_CONTROL_SOCKET_H
#define SHARDC_RUNTIME_CONTROL_SOCKET_H

#include <cstdint>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace shardc::rt {

/// Owns a file descriptor.
class Descriptor {
public:
  explicit Descriptor(int fd = -1) : fd(fd) {}
  Descriptor(Descriptor &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd; }
  explicit operator bool() const { return fd >= 0; }

private:
  int fd;
};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  bool operator==(const SocketAddress &other) const { return str() == other.str(); }
  sockaddr *raw() { return reinterpret_cast<sockaddr *>(&storage); }
  const sockaddr *raw() const { return reinterpret_cast<const sockaddr *>(&storage); }
  uint16_t port() const;
  SocketAddress withPort(uint16_t port) const;
  /// "10.0.0.1", "fe80::1%eth0".
  std::string host() const;
  /// "10.0.0.1:29500", "[::1]:29500".
  std::string str() const;
  /// Whether this host has the address.
  bool isOwn() const;
  /// Any address of the same family.
  SocketAddress any() const;
};

/// The addresses of a host name or IP address, with port 0, in the resolver's order. Empty: see
/// `problem`.
std::vector<SocketAddress> resolve(const std::string &host, std::string &problem);
/// As `resolve`, of an IP address alone, so that nobody has to be asked.
std::vector<SocketAddress> numericAddress(const std::string &address, std::string &problem);
/// The addresses of a network interface (IPv4 first), or the address itself.
std::vector<SocketAddress> interfaceAddresses(const std::string &nameOrAddress,
                                              std::string &problem);

/// errno's text.
std::string systemError(int error);

/// On failure it is empty and errno says why.
Descriptor listenAt(const SocketAddress &address);
/// The connection may come about later, when the socket can be written.
Descriptor connectTo(const SocketAddress &address);
/// A connection that a listening socket got; empty if there is none.
Descriptor acceptFrom(const Descriptor &listening);
/// Takes over a socket that somebody else made. Throws Failure (SHARDRT_INVALID_ARGUMENT) if it
/// does not listen.
Descriptor adoptListening(int fd);

SocketAddress localAddress(const Descriptor &socket);
SocketAddress remoteAddress(const Descriptor &socket);
/// 0, or the error that a connection in progress ended with.
int connectionError(const Descriptor &socket);

/// A Unix socket in the abstract name space: it has no file and ends with its process.
Descriptor listenLocally(const std::string &name);
Descriptor connectLocally(const std::string &name);
/// Whether the process at the other end of a Unix socket has this process's user.
bool peerIsSameUser(const Descriptor &socket);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_CONTROL_SOCKET_H
