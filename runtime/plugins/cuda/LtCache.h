// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which of cuBLASLt's algorithms was the fastest for a product, kept on disk between processes.
#ifndef SHARDC_RUNTIME_PLUGINS_CUDA_LTCACHE_H
#define SHARDC_RUNTIME_PLUGINS_CUDA_LTCACHE_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace shardc::plugin::cuda {

struct LtChoice {
  uint64_t algorithm[8];
  uint64_t workspace;
};

/// A file for each device model and version of the library, of a line for each product. Lines that
/// are damaged count as not there. Without a folder for it ($XDG_CACHE_HOME, $HOME/.cache), or
/// where it cannot be written, choices are kept in memory only.
class LtCache {
public:
  /// `subject`: what choices depend on besides the product, e.g. "NVIDIA H100, cuBLASLt 120401".
  /// They are in the file `path`; empty: nowhere.
  LtCache(std::string subject, std::string path);

  /// Where the choices for a subject are kept; empty: nowhere.
  static std::string fileFor(const std::string &subject);

  std::optional<LtChoice> find(const std::string &product) const;
  /// Adds to what the file has by now, and replaces it as a whole.
  void add(const std::string &product, const LtChoice &choice);
  const std::string &file() const { return path; }

private:
  void read();

  const std::string subject;
  const std::string path;
  std::map<std::string, LtChoice> choices;
};

} // namespace shardc::plugin::cuda

#endif // SHARDC_RUNTIME_PLUGINS_CUDA_LTCACHE_H
