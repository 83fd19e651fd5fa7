// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A communicator of emulated NCCL: how its ranks find each other, its errors, and its operations.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_NCCL_COMMUNICATOR_H
#define SHARDC_TOOLS_CUDA_EMULATOR_NCCL_COMMUNICATOR_H

#include "tools/cuda-emulator/Streams.h"
#include "tools/cuda-emulator/nccl/Mailbox.h"
#include "tools/cuda-emulator/nccl/Nccl.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

namespace shardc::emulator {

/// What all communicators of one world share on a rank.
struct NcclRoot {
  NcclRoot(const std::string &folder, int rank);

  Mailbox mailbox;
  const int rank; ///< in the world
  /// CUDA_EMULATED_NCCL_ERROR=N or N:RANK: operation number N (from 1) of the rank fails, which the
  /// second question after its start is told.
  uint64_t failing = 0;
  std::atomic<uint64_t> started{0};
};

/// Texts of the last error of the process, for ncclGetLastError.
void setLastError(const std::string &text);
const char *lastErrorText();

enum class CommCall { AllReduce, Broadcast, Reduce, AllGather, ReduceScatter, Send, Receive };
const char *nameOf(CommCall call);

/// One call between ncclGroupStart and ncclGroupEnd, or by itself.
struct CommWork {
  CommCall call = CommCall::AllReduce;
  const void *send = nullptr;
  void *receive = nullptr;
  uint64_t count = 0;
  int type = 0, reduction = 0, peer = 0; ///< peer: of a send or receive, or the root

  size_t bytes() const;
  /// "ncclAllReduce of 4 elements of type 7 (reduction 0)".
  std::string describe() const;
};

class Communicator : public std::enable_shared_from_this<Communicator> {
public:
  /// `id` names it among those of its world.
  Communicator(std::shared_ptr<NcclRoot> root, std::string id, int rank, int size, int device,
               bool blocking);

  const std::shared_ptr<NcclRoot> root;
  const int device;
  const bool blocking;
  int rank, size; ///< of a split, when all have come

  /// Of a world: says hello. Of a split: color and key of this rank have been told.
  void beginWorld();
  void beginSplit(std::shared_ptr<Communicator> parent, uint64_t number, int color, int key);
  /// Goes on with its beginning. ncclInProgress until all ranks have come, then what is wrong.
  ncclResult_t state();
  /// What is wrong with calling it now; its text is the last error.
  ncclResult_t usable(const char *function);
  /// A call of a communicator that does not block is not done when it returns.
  void markCalled() { asked = blocking; }
  void abort() { aborted = true; }
  bool isAborted() const { return aborted; }
  void fail(ncclResult_t error, const std::string &text);
  /// The same, seen by the second `state` from now. A host that first looks which operations are
  /// done, and then asks, may be between the two now: when it asks again it has seen that those
  /// before this one are.
  void failLater(ncclResult_t error, const std::string &text);
  uint64_t nextSplit() { return ++splits; }
  /// Work that was enqueued and is not done.
  std::atomic<int> inFlight{0};

  /// Works of one group on one stream, as one operation of it.
  ncclResult_t enqueue(CUstream stream, std::vector<CommWork> works);
  std::string describe() const { return "rank " + std::to_string(rank) + " of " + id; }

private:
  friend class Running;

  ncclResult_t comeTogether();
  ncclResult_t comeTogetherSplit();
  std::string name(const char *what, uint64_t number, int from, int to) const;

  const std::string id;
  std::mutex mutex;
  ncclResult_t error = ncclInProgress;
  bool asked = true;
  ncclResult_t laterError = ncclSuccess; ///< after so many more questions
  std::string laterText;
  int questions = 0;
  std::atomic<bool> aborted{false};
  uint64_t splits = 0;
  std::shared_ptr<Communicator> parent; ///< while a split is made
  uint64_t splitNumber = 0;
  int color = 0;
  // Numbers of the last operations: of the communicator, and with each peer.
  uint64_t collectives = 0;
  std::map<int, uint64_t> sent, received;
};

/// The communicator behind a handle; null if it was destroyed, or never was one.
std::shared_ptr<Communicator> communicatorOf(ncclComm_t handle);

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_NCCL_COMMUNICATOR_H
