// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What shardrt_communicator is.
#ifndef SHARDC_RUNTIME_COMM_ENDPOINT_H
#define SHARDC_RUNTIME_COMM_ENDPOINT_H

#include "runtime/comm/Communicator.h"

namespace shardc::rt {

/// A rank's end of a world, shared by the caller's handle and the model that uses it, so that the
/// order in which they are destroyed does not matter.
struct Endpoint {
  explicit Endpoint(std::unique_ptr<Communicator> communicator)
      : communicator(std::move(communicator)) {}
  const std::unique_ptr<Communicator> communicator;
  std::atomic<bool> bound{false}; ///< a model uses it
  /// Of all its ranks and no other world's; empty if it is not known.
  std::string world;
  std::string description = "brought by the caller";
  /// Compute threads that fit this rank; 0: cores divided by the world's size.
  int32_t threads = 0;
};

} // namespace shardc::rt

struct shardrt_communicator {
  std::shared_ptr<shardc::rt::Endpoint> endpoint;
};

#endif // SHARDC_RUNTIME_COMM_ENDPOINT_H
