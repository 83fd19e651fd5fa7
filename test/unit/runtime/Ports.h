// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ports of this host at which nobody listens, and which nobody else gets.
#ifndef SHARDC_TEST_UNIT_RUNTIME_PORTS_H
#define SHARDC_TEST_UNIT_RUNTIME_PORTS_H

#include <arpa/inet.h>
#include <cstdlib>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace test {

/// A port of the loopback interface. A socket that does not listen is bound to it for as long as
/// this process lives: connections are refused, and the system gives it to nobody, but who asks for
/// this very port with SO_REUSEADDR, as rank 0 does, can listen there.
inline uint16_t ownPort(int family = AF_INET) {
  sockaddr_storage address{};
  socklen_t length = sizeof(sockaddr_in);
  address.ss_family = sa_family_t(family);
  if (family == AF_INET6) {
    reinterpret_cast<sockaddr_in6 *>(&address)->sin6_addr = in6addr_loopback;
    length = sizeof(sockaddr_in6);
  } else {
    reinterpret_cast<sockaddr_in *>(&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  auto *bare = reinterpret_cast<sockaddr *>(&address);
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      bind(fd, bare, length) != 0 || getsockname(fd, bare, &length) != 0)
    std::abort();
  // The port is at the same place in both kinds of addresses.
  return ntohs(reinterpret_cast<sockaddr_in *>(&address)->sin_port);
}

/// A secret that the worlds of no other process have, also not those of the same test that runs
/// beside it.
inline std::string ownSecret() {
  return "the secret of the worlds of process " + std::to_string(getpid());
}

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_PORTS_H
