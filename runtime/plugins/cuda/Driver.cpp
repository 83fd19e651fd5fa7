// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/Driver.h"

#include "runtime/plugins/cuda/Images.h"

#include <dlfcn.h>
#include <map>
#include <mutex>

namespace shardc::plugin::cuda {

namespace {

/// A name without a folder is looked for beside the plugin first.
std::vector<std::string> placesOf(const char *library) {
  if (!library)
    return {"libcuda.so.1", "libcuda.so"};
  std::string name = library, folder = folderOfPlugin();
  if (name.find('/') != std::string::npos || folder.empty())
    return {name};
  return {folder + "/" + name, name};
}

} // namespace

std::string folderOfPlugin() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void *>(&folderOfPlugin), &info) || !info.dli_fname)
    return "";
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::shared_ptr<OpenLibrary> OpenLibrary::open(const std::string &what,
                                               const std::vector<std::string> &names) {
  std::string reasons;
  for (const std::string &name : names) {
    if (void *handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))
      return std::shared_ptr<OpenLibrary>(new OpenLibrary(name, handle));
    reasons += std::string("\n  ") + dlerror();
  }
  throw Failure{SHARDRT_NOT_FOUND, what + " cannot be loaded:" + reasons};
}

OpenLibrary::~OpenLibrary() { dlclose(handle); }

void *OpenLibrary::find(const char *symbol) const { return dlsym(handle, symbol); }

std::shared_ptr<const Driver> Driver::load(const char *library) {
  static std::mutex &mutex = *new std::mutex;
  // Drivers stay, also when the process ends: they are not made to be unloaded, and devices may be
  // closed later than anything that was made in here. So does this library (CMakeLists.txt).
  static auto &loaded = *new std::map<std::string, std::shared_ptr<const Driver>>;
  std::lock_guard lock(mutex);
  std::shared_ptr<const Driver> &known = loaded[library ? library : ""];
  if (known)
    return known;
  auto driver = std::make_shared<Driver>();
  driver->library =
      OpenLibrary::open(library ? "the emulated device" : "the driver of CUDA", placesOf(library));
  Driver &entries = *driver;
  EntryFinder finder([&](const char *symbol) { return driver->library->find(symbol); });
  SHARDC_CUDA_DRIVER(SHARDC_ENTRY_FIND)
  if (driver->driverVersion)
    driver->driverVersion(&driver->version);
  finder.require(driver->library->name, driver->version, oldestDriver,
                 "is a driver for CUDA " + cudaVersionText(driver->version) +
                     ", and programs need one for",
                 cudaVersionText(oldestDriver));
  finder.findOptional(driver->loadBitcode, "cuEmulatedModuleLoadBitcode");
  if (library && !driver->isEmulated())
    throw Failure{SHARDRT_INCOMPATIBLE,
                  driver->library->name + " is no emulated device: it does not take bitcode"};
  driver->check(driver->init(0), "starting the driver");
  return known = driver;
}

std::string Driver::describe(Result result) const {
  const char *name = nullptr, *text = nullptr;
  errorName(result, &name);
  errorText(result, &text);
  return (name ? name : "error " + std::to_string(result)) +
         (text ? " (" + std::string(text) + ")" : "");
}

void Driver::check(Result result, const std::string &what) const {
  if (result == resultSuccess)
    return;
  throw Failure{result == resultOutOfMemory ? SHARDRT_OUT_OF_MEMORY
                : result == resultNoDevice  ? SHARDRT_NOT_FOUND
                                            : SHARDRT_INTERNAL,
                what + ": " + describe(result)};
}

} // namespace shardc::plugin::cuda
