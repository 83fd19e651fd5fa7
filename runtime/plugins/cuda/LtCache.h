// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which of cuBLASLt's algorithms was the fastest for a product, kept on disk between processes.
#ifndef SHARDC_RUNTIME_PLUGINS_CUDA_LTCACHE_H
#define SHARDC_RUNTIME_PLUGINS_CUDA_LTCACHE_H

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace shardc::plugin::cuda {

struct LtChoice {
  uint64_t algorithm[8];
  uint64_t workspace;
};

/// A file for each device model and version of the library, of a line for each product. Processes
/// add lines at its end, one at a time. Lines that are damaged count as not there. Without a folder
/// for it, or where it cannot be written, choices are kept in memory only. All of that is warned
/// of, once.
class LtCache {
public:
  using Warn = std::function<void(const std::string &)>;

  /// `subject`: what choices depend on besides the product, e.g. "NVIDIA H100, cuBLASLt 120401".
  /// They are in the file `path`; empty: nowhere.
  LtCache(std::string subject, std::string path, Warn warn = {});

  /// Where the choices for a subject are kept; empty: nowhere. It is the folder that
  /// SHARDRT_GEMM_CACHE names, else $XDG_CACHE_HOME/shardc or $HOME/.cache/shardc, where those of
  /// an emulated device have no place.
  static std::string fileFor(const std::string &subject, bool isEmulated);

  std::optional<LtChoice> find(const std::string &product) const;
  /// Keeps a choice that the file does not have.
  void add(const std::string &product, const LtChoice &choice);
  const std::string &file() const { return path; }

private:
  void read();
  void warnOnce(const std::string &text);

  const std::string subject;
  const std::string path;
  const Warn warn;
  bool warned = false;
  std::map<std::string, LtChoice> choices;
};

} // namespace shardc::plugin::cuda

#endif // SHARDC_RUNTIME_PLUGINS_CUDA_LTCACHE_H
