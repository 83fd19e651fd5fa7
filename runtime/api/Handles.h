// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the opaque types of shardrt.h are.
#ifndef SHARDC_RUNTIME_API_HANDLES_H
#define SHARDC_RUNTIME_API_HANDLES_H

#include "runtime/comm/Communicator.h"

namespace shardrt {

/// A rank's end of a world, shared by the caller's handle and the model that uses it, so that the
/// order in which they are destroyed does not matter.
struct Endpoint {
  explicit Endpoint(std::unique_ptr<Communicator> communicator)
      : communicator(std::move(communicator)) {}
  const std::unique_ptr<Communicator> communicator;
  std::atomic<bool> bound{false}; ///< a model uses it
};

} // namespace shardrt

struct shardrt_communicator {
  std::shared_ptr<shardrt::Endpoint> endpoint;
};

struct shardrt_error {
  shardrt_status status;
  std::string message;
};

#endif // SHARDC_RUNTIME_API_HANDLES_H
