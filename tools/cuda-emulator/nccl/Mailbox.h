// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How ranks of emulated NCCL reach each other, be they threads or processes: messages are files in
// a folder of shared memory, which the unique id names. A message appears whole, and its reader
// takes it away.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_NCCL_MAILBOX_H
#define SHARDC_TOOLS_CUDA_EMULATOR_NCCL_MAILBOX_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardc::emulator {

class Mailbox {
public:
  /// A name for a new folder, which nobody else has.
  static std::string newName();

  /// Makes the folder if it is not there; this rank is in it until the object is destroyed. Throws
  /// std::runtime_error.
  Mailbox(std::string folder, int rank);
  /// The last one that leaves, or finds that all others have died, removes the folder.
  ~Mailbox();
  Mailbox(const Mailbox &) = delete;

  /// One message under several names. Throws std::runtime_error if there is no room.
  void post(const std::vector<std::string> &names, std::string_view head, std::string_view body);
  std::optional<std::string> take(const std::string &name);
  std::optional<std::string> look(const std::string &name) const;
  /// Whether a message has not been taken yet.
  bool isThere(const std::string &name) const;

private:
  std::string path(const std::string &name) const { return folder + "/" + name; }

  const std::string folder;
  const std::string own; ///< the file that says that this rank is here
  uint64_t posted = 0;
};

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_NCCL_MAILBOX_H
