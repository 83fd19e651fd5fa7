// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/process/LoadPlugin.h"

#include "runtime/support/Failure.h"

#include <dlfcn.h>
#include <unistd.h>

namespace shardc::rt {

namespace {

/// The MPIs that the plugin is built for. Variables that only their launchers set.
struct Mpi {
  const char *name;
  std::vector<const char *> variables;
};
const Mpi mpis[] = {{"openmpi", {"OMPI_COMM_WORLD_SIZE"}},
                    {"mpich", {"PMI_SIZE", "MPI_LOCALNRANKS"}}};

std::string folderOfThisLibrary() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void *>(&checkPlugin), &info) || !info.dli_fname)
    return "";
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::vector<std::string> splitPath(const std::string &text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(':', begin), text.size());
    if (end > begin)
      parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// File names relative to a folder of plugins, the likeliest first.
std::vector<std::string> fileNames(const std::string &name, const Variables &variables) {
  for (const Mpi &mpi : mpis)
    if (name == mpi.name)
      return {name + "/libshardrt_mpi.so"};
  if (name != "mpi")
    return {"libshardrt_" + name + ".so"};
  std::vector<std::string> launched, others;
  for (const Mpi &mpi : mpis) {
    bool here = false;
    for (const char *variable : mpi.variables)
      here |= variables(variable).has_value();
    (here ? launched : others).push_back(std::string(mpi.name) + "/libshardrt_mpi.so");
  }
  // Without its launcher's variables nothing is known of the MPI: any may do. With them, another
  // MPI would see a world of one process.
  if (launched.empty())
    launched = others;
  launched.push_back("libshardrt_mpi.so");
  return launched;
}

} // namespace

std::vector<std::string> pluginPaths(const std::string &name, const Variables &variables) {
  std::vector<std::string> folders = splitPath(variables("SHARDRT_PLUGIN_PATH").value_or("")),
                           paths;
  if (std::string own = folderOfThisLibrary(); !own.empty()) {
    folders.push_back(own);
    folders.push_back(own + "/shardrt");
  }
  std::vector<std::string> files = fileNames(name, variables);
  for (const std::string &folder : folders)
    for (const std::string &file : files)
      paths.push_back(folder + "/" + file);
  std::string last = files.back(); // the system knows no folders
  if (last.find('/') == std::string::npos)
    paths.push_back(last);
  return paths;
}

void checkPlugin(const shardrt_transport_plugin *functions, const std::string &path) {
  std::string headline = "transport " + path;
  if (!functions)
    throw Failure(SHARDRT_INCOMPATIBLE, headline + ": shardrt_transport_query returned null");
  Problems problems;
  if (functions->struct_bytes != sizeof *functions)
    problems.add("its table has " + std::to_string(functions->struct_bytes) +
                 " bytes, that of this runtime " + std::to_string(sizeof *functions));
  else if (functions->version != SHARDRT_TRANSPORT_VERSION)
    problems.add("its interface has version " + std::to_string(functions->version) +
                 ", that of this runtime " + std::to_string(SHARDRT_TRANSPORT_VERSION));
  problems.raise(SHARDRT_INCOMPATIBLE, headline);
  for (auto [missing, what] :
       {std::pair(!functions->name, "name"), std::pair(!functions->details, "details"),
        std::pair(!functions->open, "open"), std::pair(!functions->connect, "connect"),
        std::pair(!functions->transfer, "transfer"), std::pair(!functions->close, "close"),
        std::pair(functions->launch && !functions->broadcast, "broadcast (there is launch)")})
    if (missing)
      problems.add(std::string(what) + " is null");
  problems.raise(SHARDRT_INCOMPATIBLE, headline);
}

FoundPlugin findPlugin(const std::string &what, const std::string &name, const char *query,
                       const Variables &variables) {
  // The name becomes part of a path: it may not lead elsewhere.
  if (name.empty() ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") != std::string::npos)
    throw Failure(SHARDRT_INVALID_ARGUMENT, "'" + name + "' is no name of a " + what +
                                                ": they have small letters, digits, '_' and '-'");
  Problems problems;
  for (const std::string &path : pluginPaths(name, variables)) {
    bool inFolder = path.find('/') != std::string::npos;
    if (inFolder && access(path.c_str(), F_OK) != 0) {
      problems.add(path + ": there is no such file");
      continue;
    }
    void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      // What exists and cannot be loaded is a reason to stop only if nothing better follows: its
      // engine may not be installed.
      problems.add(dlerror());
      continue;
    }
    FoundPlugin found{path, std::shared_ptr<void>(handle, [](void *library) { dlclose(library); }),
                      dlsym(handle, query)};
    if (!found.query)
      throw Failure(SHARDRT_INCOMPATIBLE, what + " " + path + ": it has no function " + query);
    return found;
  }
  std::string headline = "there is no " + what + " '" + name + "'";
  problems.raise(SHARDRT_NOT_FOUND,
                 headline + " that could be loaded (SHARDRT_PLUGIN_PATH names more folders)");
  throw Failure(SHARDRT_NOT_FOUND, headline);
}

LoadedPlugin loadPlugin(const std::string &name, const Variables &variables) {
  FoundPlugin found = findPlugin("transport", name, "shardrt_transport_query", variables);
  LoadedPlugin plugin{found.path, reinterpret_cast<shardrt_transport_query_fn>(found.query)(),
                      std::move(found.library)};
  checkPlugin(plugin.functions, plugin.path);
  return plugin;
}

} // namespace shardc::rt
