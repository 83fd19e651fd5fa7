// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Libraries that the runtime loads when they are needed: where they are looked for; and those that
// move data between processes (runtime/include/shardrt_transport.h): what they must be.
#ifndef SHARDC_RUNTIME_PROCESS_LOADPLUGIN_H
#define SHARDC_RUNTIME_PROCESS_LOADPLUGIN_H

#include "runtime/include/shardrt_transport.h"
#include "runtime/launch/LaunchEnvironment.h"

#include <memory>

namespace shardc::rt {

struct LoadedPlugin {
  std::string path;
  const shardrt_transport_plugin *functions = nullptr;
  std::shared_ptr<void> library; ///< loaded as long as this lives; null: not loaded by dlopen
};

/// Where a plugin may be, in the order of the search. `name` is "gloo", "mpi", or one of the MPIs
/// that a plugin was built for ("openmpi", "mpich"): then it is in a folder of that name. For "mpi"
/// the launcher's variables say which. The folders are those of SHARDRT_PLUGIN_PATH (separated by
/// colons), that of this library, its subfolder shardrt, and at last the system's.
std::vector<std::string> pluginPaths(const std::string &name, const Variables &variables);

/// A library that was found, and the function of it that was asked for.
struct FoundPlugin {
  std::string path;
  std::shared_ptr<void> library; ///< loaded as long as this lives
  void *query = nullptr;
};

/// Loads the first that exists. `what` is what such plugins are called: "transport". Throws as
/// loadPlugin does.
FoundPlugin findPlugin(const std::string &what, const std::string &name, const char *query,
                       const Variables &variables);

/// Loads the first that exists. Throws Failure: SHARDRT_NOT_FOUND, with all places and what was
/// wrong there; SHARDRT_INCOMPATIBLE if it is no plugin, or not one for this runtime.
LoadedPlugin loadPlugin(const std::string &name, const Variables &variables);

/// Throws Failure (SHARDRT_INCOMPATIBLE) with everything that is wrong with a plugin's table.
void checkPlugin(const shardrt_transport_plugin *functions, const std::string &path);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_PROCESS_LOADPLUGIN_H
