// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/artifact/Link.h"

#include "runtime/abi/Seal.h"

#include "lld/Common/Driver.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <dlfcn.h>

#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace llvm;

namespace shardc::artifact {
namespace {

/// The file that the running process has loaded for the library that defines `address`: linking
/// against it records the library's soname, and needs no development packages where the compiler
/// runs.
std::string libraryOf(const void *address) {
  Dl_info info;
  if (!address || dladdr(address, &info) == 0 || !info.dli_fname)
    return {};
  return info.dli_fname;
}

Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

Error writeFile(StringRef path, StringRef bytes) {
  std::error_code error;
  raw_fd_ostream stream(path, error);
  if (!error) {
    stream << bytes;
    stream.close();
    error = stream.error();
  }
  stream.clear_error();
  return error ? makeError("cannot write " + path + ": " + error.message()) : Error::success();
}

/// Appends what the runtime knows a damaged file by.
Error sealFile(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> object = MemoryBuffer::getFile(path);
  if (!object)
    return makeError("cannot read " + path + ": " + object.getError().message());
  ArtifactSeal seal = makeSeal(std::string_view((*object)->getBuffer()));
  std::error_code error;
  raw_fd_ostream stream(path, error, sys::fs::OF_Append);
  if (!error) {
    stream.write(reinterpret_cast<const char *>(&seal), sizeof seal);
    stream.close();
    error = stream.error();
  }
  stream.clear_error();
  return error ? makeError("cannot write " + path + ": " + error.message()) : Error::success();
}

} // namespace

Error linkSharedObject(ArrayRef<SmallVector<char, 0>> objects, StringRef path,
                       const LinkOptions &options) {
  SmallString<128> directory;
  if (std::error_code error = sys::fs::createUniqueDirectory("shardc-link", directory))
    return makeError("cannot make a temporary directory: " + error.message());
  struct Cleanup {
    StringRef directory;
    ~Cleanup() { sys::fs::remove_directories(directory); }
  } cleanup{directory};

  std::vector<std::string> inputs;
  for (const SmallVector<char, 0> &object : objects) {
    inputs.push_back((directory + "/" + Twine(inputs.size()) + ".o").str());
    if (Error error = writeFile(inputs.back(), StringRef(object.data(), object.size())))
      return error;
  }
  std::string script = (directory + "/exports").str();
  std::string exports = "{\n";
  if (!options.exported.empty())
    exports += "global: ";
  for (const std::string &name : options.exported)
    exports += name + "; ";
  if (Error error = writeFile(script, exports + "local: *;\n};\n"))
    return error;

  std::string temporary = (path + ".tmp" + Twine(sys::Process::getProcessId())).str();
  FileRemover removeTemporary(temporary);
  std::vector<std::string> args{"ld.lld",
                                "-shared",
                                "-o",
                                temporary,
                                "--no-undefined",
                                "--gc-sections",
                                "--build-id=sha1",
                                "-z",
                                "noexecstack",
                                "--hash-style=gnu",
                                "--version-script=" + script};
  if (!options.soname.empty())
    args.push_back("--soname=" + options.soname);
  args.insert(args.end(), inputs.begin(), inputs.end());
  for (const std::string &library : options.libraries) {
    // By its name, so that a shared object is found where it is, or beside the result.
    args.push_back(("-L" + sys::path::parent_path(library)).str());
    args.push_back(("-l:" + sys::path::filename(library)).str());
    args.push_back("-rpath");
    args.push_back(sys::path::parent_path(library).str());
  }
  if (!options.libraries.empty()) {
    args.push_back("-rpath");
    args.push_back("$ORIGIN");
  }
  args.push_back("--as-needed");
  for (const char *symbol : {"expf", "memcpy"})
    if (std::string library = libraryOf(dlsym(RTLD_DEFAULT, symbol)); !library.empty())
      args.push_back(library);

  std::vector<const char *> arguments;
  for (const std::string &arg : args)
    arguments.push_back(arg.c_str());
  std::string output;
  raw_string_ostream stream(output);
  const lld::DriverDef drivers[] = {{lld::Gnu, &lld::elf::link}};
  // lld keeps its state in globals.
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  lld::Result result = lld::lldMain(arguments, stream, stream, drivers);
  if (result.retCode != 0)
    return makeError("linking " + path + " failed: " + output);
  if (Error error = sealFile(temporary))
    return error;
  if (std::error_code error = sys::fs::rename(temporary, path))
    return makeError("cannot write " + path + ": " + error.message());
  return Error::success();
}

} // namespace shardc::artifact
