// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The importer's own process for TorchScript files: what libtorch does with a broken file, or a
// model that never ends, stays in here.
//
//   shardc-torchscript MODEL.pt [--input NAME=8x64xf32]... [--example NAME=8x64xf32]...
//
// writes the program to standard output in the form of torch.export's JSON. Exit status 1 after a
// message on standard error.
#include "importers/torchscript/plugin/Model.h"

#include <sys/resource.h>

#include <cstdio>
#include <cstring>
#include <exception>

namespace {

/// Seconds of processor time that no model needs.
constexpr rlim_t maxSeconds = 600;
/// Bytes of JSON that no model has.
constexpr rlim_t maxBytes = rlim_t(1) << 31;

void limitResources() {
  rlimit limit{maxSeconds, maxSeconds};
  setrlimit(RLIMIT_CPU, &limit);
  limit = {maxBytes, maxBytes};
  setrlimit(RLIMIT_FSIZE, &limit);
  limit = {0, 0};
  setrlimit(RLIMIT_CORE, &limit);
}

} // namespace

int main(int argc, char **argv) {
  shardc::torchscript::ImportRequest request;
  for (int i = 1; i < argc; ++i) {
    bool isInput = std::strcmp(argv[i], "--input") == 0;
    bool isExample = std::strcmp(argv[i], "--example") == 0;
    if ((isInput || isExample) && i + 1 < argc)
      (isInput ? request.inputs : request.examples).push_back(argv[++i]);
    else if (request.path.empty() && argv[i][0] != '-')
      request.path = argv[i];
    else
      request.path.clear(), i = argc;
  }
  if (request.path.empty()) {
    std::fprintf(stderr, "usage: %s MODEL.pt [--input NAME=8x64xf32]...\n", argv[0]);
    return 1;
  }
  limitResources();
  try {
    std::string json = shardc::torchscript::importModel(request);
    bool written = std::fwrite(json.data(), 1, json.size(), stdout) == json.size();
    return written && std::fflush(stdout) == 0 ? 0 : 1;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
