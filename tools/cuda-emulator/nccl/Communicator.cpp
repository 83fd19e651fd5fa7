// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cuda-emulator/nccl/Communicator.h"

#include "tools/cuda-emulator/nccl/Reduce.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace shardc::emulator {

namespace {

// Used until the process ends.
std::mutex &errorMutex = *new std::mutex;
std::string &errorText = *new std::string;

/// What a rank says when a world begins.
struct Hello {
  int size, process, device;
};
struct SplitWish {
  int color, key;
};

template <typename T> std::string_view bytesOf(const T &value) {
  return {reinterpret_cast<const char *>(&value), sizeof value};
}
template <typename T> T valueOf(const std::string &text) {
  T value{};
  std::memcpy(&value, text.data(), std::min(text.size(), sizeof value));
  return value;
}

} // namespace

void setLastError(const std::string &text) {
  std::lock_guard lock(errorMutex);
  errorText = text;
}
const char *lastErrorText() {
  static thread_local char copy[1024];
  std::lock_guard lock(errorMutex);
  std::snprintf(copy, sizeof copy, "%s", errorText.c_str());
  return copy;
}

NcclRoot::NcclRoot(const std::string &folder, int rank) : mailbox(folder, rank), rank(rank) {
  const char *text = std::getenv("CUDA_EMULATED_NCCL_ERROR");
  if (!text)
    return;
  int only = rank;
  unsigned long long number = 0;
  if (std::sscanf(text, "%llu:%d", &number, &only) >= 1 && only == rank)
    failing = number;
}

const char *nameOf(CommCall call) {
  static const char *const names[] = {"ncclAllReduce", "ncclBroadcast",     "ncclReduce",
                                      "ncclAllGather", "ncclReduceScatter", "ncclSend",
                                      "ncclRecv"};
  return names[size_t(call)];
}

size_t CommWork::bytes() const { return size_t(count) * ncclTypeBytes(type); }

std::string CommWork::describe() const {
  std::string text = std::string(nameOf(call)) + " of " + std::to_string(count) +
                     " elements of type " + std::to_string(type);
  if (call == CommCall::AllReduce || call == CommCall::Reduce || call == CommCall::ReduceScatter)
    text += ", reduction " + std::to_string(reduction);
  if (call == CommCall::Broadcast || call == CommCall::Reduce)
    text += ", root " + std::to_string(peer);
  return text;
}

Communicator::Communicator(std::shared_ptr<NcclRoot> root, std::string id, int rank, int size,
                           int device, bool blocking)
    : root(std::move(root)), device(device), blocking(blocking), rank(rank), size(size),
      id(std::move(id)) {}

std::string Communicator::name(const char *what, uint64_t number, int from, int to) const {
  return id + "." + what + std::to_string(number) + "." + std::to_string(from) + "." +
         std::to_string(to);
}

void Communicator::beginWorld() {
  root->mailbox.post({name("hello", 0, rank, -1)}, bytesOf(Hello{size, int(getpid()), device}), "");
}

void Communicator::beginSplit(std::shared_ptr<Communicator> from, uint64_t number, int wanted,
                              int key) {
  root->mailbox.post({from->name("split", number, from->rank, -1)}, bytesOf(SplitWish{wanted, key}),
                     "");
  parent = std::move(from);
  splitNumber = number;
  color = wanted;
}

ncclResult_t Communicator::comeTogether() {
  std::vector<Hello> all;
  for (int other = 0; other < size; ++other) {
    std::optional<std::string> said = root->mailbox.look(name("hello", 0, other, -1));
    if (!said)
      return ncclInProgress;
    all.push_back(valueOf<Hello>(*said));
  }
  for (int a = 0; a < size; ++a) {
    if (all[size_t(a)].size != size) {
      setLastError("rank " + std::to_string(rank) + " was told of " + std::to_string(size) +
                   " ranks, rank " + std::to_string(a) + " of " +
                   std::to_string(all[size_t(a)].size));
      return ncclInvalidArgument;
    }
    for (int b = 0; b < a; ++b)
      if (all[size_t(a)].process == all[size_t(b)].process &&
          all[size_t(a)].device == all[size_t(b)].device) {
        setLastError("Duplicate GPU detected: ranks " + std::to_string(b) + " and " +
                     std::to_string(a) + " both on CUDA device " +
                     std::to_string(all[size_t(a)].device));
        return ncclInvalidUsage;
      }
  }
  return ncclSuccess;
}

ncclResult_t Communicator::comeTogetherSplit() {
  std::vector<std::pair<int, int>> members; // key, rank of the parent
  for (int other = 0; other < parent->size; ++other) {
    std::optional<std::string> said =
        root->mailbox.look(parent->name("split", splitNumber, other, -1));
    if (!said)
      return ncclInProgress;
    if (auto wish = valueOf<SplitWish>(*said); wish.color == color)
      members.emplace_back(wish.key, other);
  }
  std::sort(members.begin(), members.end());
  size = int(members.size());
  for (int position = 0; position < size; ++position)
    if (members[size_t(position)].second == parent->rank)
      rank = position;
  parent = nullptr;
  return ncclSuccess;
}

ncclResult_t Communicator::state() {
  std::lock_guard lock(mutex);
  if (error == ncclInProgress)
    error = parent ? comeTogetherSplit() : comeTogether();
  if (error == ncclSuccess && laterError != ncclSuccess && --questions == 0) {
    error = laterError;
    setLastError(laterText);
  }
  if (error == ncclSuccess && !asked) {
    asked = true;
    return ncclInProgress;
  }
  return error;
}

void Communicator::fail(ncclResult_t what, const std::string &text) {
  setLastError(text);
  std::lock_guard lock(mutex);
  if (error == ncclSuccess)
    error = what;
}

void Communicator::failLater(ncclResult_t what, const std::string &text) {
  std::lock_guard lock(mutex);
  laterError = what;
  laterText = text;
  questions = 2;
}

ncclResult_t Communicator::usable(const char *function) {
  std::lock_guard lock(mutex);
  std::string problem;
  if (aborted)
    problem = "the communicator was aborted";
  else if (error == ncclInProgress || !asked)
    problem = "the communicator is in progress: ncclCommGetAsyncError has not said that it is done";
  else if (error != ncclSuccess)
    problem = "the communicator has failed";
  if (problem.empty())
    return ncclSuccess;
  setLastError(std::string(function) + ": " + problem);
  return ncclInvalidUsage;
}

} // namespace shardc::emulator
