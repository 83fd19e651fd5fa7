// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/artifact/UserLibraries.h"

#include "dialects/exec/CustomOps.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Object/Archive.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"

#include <dlfcn.h>

using namespace mlir;
namespace object = llvm::object;

namespace shardc::artifact {
namespace {

template <typename Symbols> void addDefined(llvm::StringSet<> &names, Symbols symbols) {
  for (const object::ELFSymbolRef symbol : symbols) {
    llvm::Expected<uint32_t> flags = symbol.getFlags();
    llvm::Expected<StringRef> name = symbol.getName();
    bool isFunction = symbol.getELFType() == llvm::ELF::STT_FUNC;
    bool isVisible = symbol.getBinding() != llvm::ELF::STB_LOCAL;
    if (flags && name && isFunction && isVisible && !(*flags & object::SymbolRef::SF_Undefined))
      names.insert(*name);
    llvm::consumeError(flags.takeError());
    llvm::consumeError(name.takeError());
  }
}

/// What a shared object, an object file or an archive defines.
llvm::Expected<llvm::StringSet<>> definedSymbols(StringRef path) {
  llvm::Expected<object::OwningBinary<object::Binary>> file = object::createBinary(path);
  if (!file)
    return file.takeError();
  llvm::StringSet<> names;
  if (auto *elf = dyn_cast<object::ELFObjectFileBase>(file->getBinary())) {
    if (elf->getEType() == llvm::ELF::ET_DYN)
      addDefined(names, elf->getDynamicSymbolIterators());
    else
      addDefined(names, elf->symbols());
    return names;
  }
  if (auto *archive = dyn_cast<object::Archive>(file->getBinary())) {
    for (const object::Archive::Symbol &symbol : archive->symbols())
      names.insert(symbol.getName());
    return names;
  }
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 "it is no shared object, object file or archive of ELF");
}

} // namespace

llvm::Expected<std::vector<std::string>> findUserLibraries(ModuleOp lowered) {
  llvm::MapVector<StringRef, SmallVector<std::pair<StringRef, StringRef>>> functions;
  if (auto list = lowered->getAttrOfType<ArrayAttr>(exec::kLibrariesAttr))
    for (auto entry : list.getAsRange<ArrayAttr>()) {
      auto text = [&](unsigned i) { return cast<StringAttr>(entry[i]).getValue(); };
      functions[text(0)].push_back({text(1), text(2)});
    }
  std::vector<std::string> paths;
  std::string problems;
  auto add = [&](const llvm::Twine &problem) {
    problems += (problems.empty() ? "" : "\n") + problem.str();
  };
  llvm::StringMap<StringRef> libraryOf;
  for (auto &[library, calls] : functions)
    for (auto [symbol, op] : calls) {
      auto [it, isNew] = libraryOf.try_emplace(symbol, library);
      if (!isNew && it->second != library)
        add("both '" + it->second + "' and '" + library + "' are to have the function '" + symbol +
            "': a program has one function of a name");
      // What is loaded with every program comes before a shared object of the user's.
      else if (isNew &&
               (dlsym(RTLD_DEFAULT, symbol.str().c_str()) || symbol.starts_with("shardrt_")))
        add("'" + symbol + "', which computes '" + op +
            "', is a name of the C library or of the runtime: give the function another, for "
            "example "
            "with the operator's library in front");
    }
  for (auto &[library, calls] : functions) {
    llvm::Expected<llvm::StringSet<>> defined = definedSymbols(library);
    if (!defined) {
      add("'" + library + "', which has the function of '" + calls.front().second +
          "': " + llvm::toString(defined.takeError()));
      continue;
    }
    for (auto [symbol, op] : calls)
      if (!defined->contains(symbol))
        add("'" + library + "' has no function '" + symbol + "', which computes '" + op +
            "'; in C++ it is to be declared extern \"C\", and be visible");
    llvm::SmallString<128> path(library);
    if (std::error_code error = llvm::sys::fs::make_absolute(path))
      add("'" + library + "': " + error.message());
    paths.push_back(path.str().str());
  }
  if (!problems.empty())
    return llvm::createStringError(llvm::inconvertibleErrorCode(), problems);
  return paths;
}

} // namespace shardc::artifact
