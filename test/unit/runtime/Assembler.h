// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_TEST_UNIT_RUNTIME_ASSEMBLER_H
#define SHARDC_TEST_UNIT_RUNTIME_ASSEMBLER_H

#include <cstdlib>
#include <glob.h>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace test {

/// NVIDIA's assembler: $SHARDC_PTXAS, or that of $CUDA_HOME or $CUDA_PATH, the one on PATH, that in
/// the usual place, or that of the wheels in `environment`. Empty where there is none.
inline std::string findAssembler(const std::string &environment) {
  std::vector<std::string> patterns;
  auto add = [&](const char *name, const char *behind) {
    if (const char *value = std::getenv(name); value && *value)
      patterns.push_back(std::string(value) + behind);
  };
  add("SHARDC_PTXAS", "");
  add("CUDA_HOME", "/bin/ptxas");
  add("CUDA_PATH", "/bin/ptxas");
  const char *path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (!folder.empty())
      patterns.push_back(folder + "/ptxas");
  patterns.push_back("/usr/local/cuda*/bin/ptxas");
  patterns.push_back(environment + "/lib/python3*/site-packages/nvidia/*/bin/ptxas");
  for (const std::string &pattern : patterns) {
    std::string found;
    glob_t matches;
    if (::glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
      for (size_t i = 0; i < matches.gl_pathc && found.empty(); ++i)
        if (::access(matches.gl_pathv[i], X_OK) == 0)
          found = matches.gl_pathv[i];
      ::globfree(&matches);
    }
    if (!found.empty())
      return found;
  }
  return "";
}

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_ASSEMBLER_H
