// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the plugins have in common at their C boundary.
#ifndef SHARDC_RUNTIME_PLUGINS_PLUGIN_H
#define SHARDC_RUNTIME_PLUGINS_PLUGIN_H

#include "runtime/include/shardrt_transport.h"

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>

namespace shardc::plugin {

/// What a plugin throws inside itself.
struct Failure {
  shardrt_status status;
  std::string message;
};

/// Runs a function at the C boundary.
template <typename Function> shardrt_status guarded(char *message, Function function) noexcept {
  auto say = [&](shardrt_status status, const char *text) {
    std::snprintf(message, SHARDRT_MESSAGE_BYTES, "%s", text);
    return status;
  };
  try {
    function();
    return SHARDRT_OK;
  } catch (const Failure &failure) {
    return say(failure.status, failure.message.c_str());
  } catch (const std::bad_alloc &) {
    return say(SHARDRT_OUT_OF_MEMORY, "there is not enough memory");
  } catch (const std::exception &error) {
    return say(SHARDRT_ABORTED, error.what());
  }
}

/// The table of a plugin without a launcher. An End is a rank's end of a world.
template <typename End> shardrt_transport_plugin pluginOf(const char *name, const char *details) {
  shardrt_transport_plugin plugin{};
  plugin.struct_bytes = sizeof plugin;
  plugin.version = SHARDRT_TRANSPORT_VERSION;
  plugin.name = name;
  plugin.details = details;
  plugin.open = [](const shardrt_transport_world *world, void **context, double timeout,
                   char *message) {
    return guarded(message, [&] { *context = new End(*world, timeout); });
  };
  plugin.connect = [](void *context, const shardrt_transport_group *groups, uint64_t count, double,
                      char *message) {
    return guarded(message, [&] { static_cast<End *>(context)->connect(groups, count); });
  };
  plugin.supports = [](void *context, int32_t kind, shardrt_type type, int32_t reduction) {
    return int32_t(static_cast<End *>(context)->supports(kind, type, reduction));
  };
  plugin.transfer = [](void *context, const shardrt_transfer *transfer, char *message) {
    return guarded(message, [&] { static_cast<End *>(context)->transfer(*transfer); });
  };
  plugin.close = [](void *context, int32_t failed) {
    auto *end = static_cast<End *>(context);
    end->close(failed != 0);
    delete end;
  };
  return plugin;
}

/// Throws when the runtime says that waiting is over.
inline void stopIfTold(const shardrt_transport_world &world) {
  if (world.must_stop(world.host))
    throw Failure{SHARDRT_ABORTED, "it was stopped"};
}

inline int64_t elementBytes(shardrt_type type) {
  switch (type) {
  case SHARDRT_F64:
  case SHARDRT_I64:
    return 8;
  case SHARDRT_F32:
  case SHARDRT_I32:
    return 4;
  case SHARDRT_F16:
  case SHARDRT_BF16:
  case SHARDRT_I16:
    return 2;
  default:
    return 1;
  }
}

} // namespace shardc::plugin

#endif // SHARDC_RUNTIME_PLUGINS_PLUGIN_H
