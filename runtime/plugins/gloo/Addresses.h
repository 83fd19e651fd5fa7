// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Addresses of connections as ranks tell them each other. A rank listens for every other one, and
// all ranks are told all addresses: of Gloo's own form, which has 136 bytes, only port and number
// differ.
#ifndef SHARDC_RUNTIME_PLUGINS_GLOO_ADDRESSES_H
#define SHARDC_RUNTIME_PLUGINS_GLOO_ADDRESSES_H

#include <cstddef>
#include <cstdint>
#include <gloo/transport/tcp/address.h>
#include <vector>

namespace shardc::plugin {

/// Those at which one rank listens, by the rank that connects.
class Addresses {
public:
  static constexpr size_t bytesFor(size_t worldSize) {
    return sizeof(Host) + worldSize * sizeof(Port);
  }

  explicit Addresses(size_t worldSize) : bytes(bytesFor(worldSize)) {}
  /// From what a rank of such a world sent.
  Addresses(const char *sent, size_t worldSize) : bytes(sent, sent + bytesFor(worldSize)) {}

  /// Throws Failure unless it is of IP and of the same interface as the others.
  void set(size_t rank, const gloo::transport::tcp::Address &address);
  /// Throws Failure if it was not set.
  gloo::transport::tcp::Address get(size_t rank) const;

  const std::vector<char> &sent() const { return bytes; }

private:
  struct Host {
    uint16_t family; ///< 0: no address was set
    uint16_t reserved;
    uint32_t scope; ///< of a link-local address
    char ip[16];    ///< in network order, as the port
  };
  struct Port {
    uint16_t port; ///< 0: it was not set
    uint16_t reserved;
    int32_t sequence; ///< Gloo's number of the connection, if it has one
  };
  static constexpr size_t placeOf(size_t rank) { return sizeof(Host) + rank * sizeof(Port); }

  std::vector<char> bytes; ///< a Host, and a Port for each rank
};

} // namespace shardc::plugin

#endif // SHARDC_RUNTIME_PLUGINS_GLOO_ADDRESSES_H
