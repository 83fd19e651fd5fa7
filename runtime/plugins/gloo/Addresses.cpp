// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/gloo/Addresses.h"

#include "runtime/plugins/Plugin.h"

#include <cstring>
#include <netinet/in.h>

namespace shardc::plugin {

namespace {

template <typename Value> Value load(const std::vector<char> &bytes, size_t offset) {
  Value value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}
template <typename Value> void store(std::vector<char> &bytes, size_t offset, const Value &value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

} // namespace

void Addresses::set(size_t rank, const gloo::transport::tcp::Address &address) {
  const sockaddr_storage &storage = address.getSockaddr();
  Host host{};
  Port port{};
  port.sequence = int32_t(address.getSeq());
  host.family = storage.ss_family;
  if (storage.ss_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &storage, sizeof in);
    std::memcpy(host.ip, &in.sin_addr, sizeof in.sin_addr);
    port.port = in.sin_port;
  } else if (storage.ss_family == AF_INET6) {
    sockaddr_in6 in;
    std::memcpy(&in, &storage, sizeof in);
    std::memcpy(host.ip, &in.sin6_addr, sizeof in.sin6_addr);
    host.scope = in.sin6_scope_id;
    port.port = in.sin6_port;
  } else {
    throw Failure{SHARDRT_INTERNAL, "Gloo listens at " + address.str() + ", which is not IP"};
  }
  Host before = load<Host>(bytes, 0);
  if (before.family != 0 && std::memcmp(&before, &host, sizeof host) != 0)
    throw Failure{SHARDRT_INTERNAL, "Gloo listens at several interfaces, also " + address.str()};
  store(bytes, 0, host);
  store(bytes, placeOf(rank), port);
}

gloo::transport::tcp::Address Addresses::get(size_t rank) const {
  auto host = load<Host>(bytes, 0);
  auto port = load<Port>(bytes, placeOf(rank));
  if (port.port == 0 || (host.family != AF_INET && host.family != AF_INET6))
    throw Failure{SHARDRT_MISMATCH, "it has no valid address"};
  sockaddr_storage storage{};
  if (host.family == AF_INET) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = port.port;
    std::memcpy(&in.sin_addr, host.ip, sizeof in.sin_addr);
    std::memcpy(&storage, &in, sizeof in);
  } else {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = port.port;
    in.sin6_scope_id = host.scope;
    std::memcpy(&in.sin6_addr, host.ip, sizeof in.sin6_addr);
    std::memcpy(&storage, &in, sizeof in);
  }
  return gloo::transport::tcp::Address(storage, port.sequence);
}

} // namespace shardc::plugin
