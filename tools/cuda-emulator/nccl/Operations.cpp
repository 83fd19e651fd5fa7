// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations of emulated NCCL on streams. When one starts, it shows the others what it is and what
// it gives; it is done when it has got what they give. Nothing of it waits: it is asked again.
#include "tools/cuda-emulator/nccl/Communicator.h"
#include "tools/cuda-emulator/nccl/Reduce.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace shardc::emulator {

namespace {

/// What stands in front of the data of a message.
struct Head {
  int call, type, reduction, root;
  uint64_t count;
};

bool isPair(CommCall call) { return call == CommCall::Send || call == CommCall::Receive; }

/// What a rank reads and writes.
void touch(const Communicator &c, const CommWork &work, std::vector<Region> &reads,
           std::vector<Region> &writes) {
  const uint64_t bytes = work.bytes(), all = bytes * uint64_t(c.size);
  bool roots = c.rank == work.peer;
  auto read = [&](uint64_t size) { reads.emplace_back(work.send, size); };
  auto write = [&](uint64_t size) { writes.emplace_back(work.receive, size); };
  switch (work.call) {
  case CommCall::AllReduce:
    return read(bytes), write(bytes);
  case CommCall::Broadcast:
    return (roots ? read(bytes) : void()), write(bytes);
  case CommCall::Reduce:
    return read(bytes), (roots ? write(bytes) : void());
  case CommCall::AllGather:
    return read(bytes), write(all);
  case CommCall::ReduceScatter:
    return read(all), write(bytes);
  case CommCall::Send:
    return read(bytes);
  case CommCall::Receive:
    return write(bytes);
  }
}

} // namespace

/// One work that has started.
class Running {
public:
  Running(std::shared_ptr<Communicator> communicator, const CommWork &work)
      : c(std::move(communicator)), work(work) {}

  /// Shows what it is. Throws std::runtime_error.
  void show() {
    if (isPair(work.call)) {
      auto &numbers = work.call == CommCall::Send ? c->sent : c->received;
      number = ++numbers[work.peer];
      if (work.call == CommCall::Send)
        post({name(c->rank, work.peer)}, work.send, work.bytes());
      return;
    }
    number = ++c->collectives;
    got.resize(size_t(c->size));
    std::vector<std::string> others, empty;
    for (int q = 0; q < c->size; ++q)
      if (q != c->rank) {
        bool gives = work.call != CommCall::Broadcast || c->rank == work.peer;
        gives &= work.call != CommCall::Reduce || q == work.peer;
        (gives ? others : empty).push_back(name(c->rank, q));
      }
    post(empty, nullptr, 0);
    if (work.call != CommCall::ReduceScatter)
      return post(others, work.send, work.bytes());
    for (int q = 0; q < c->size; ++q)
      if (q != c->rank)
        post({name(c->rank, q)}, static_cast<const char *>(work.send) + size_t(q) * work.bytes(),
             work.bytes());
  }

  Progress go() {
    if (work.call == CommCall::Send)
      return c->root->mailbox.isThere(name(c->rank, work.peer)) ? Progress::Blocked
                                                                : Progress::Done;
    if (work.call == CommCall::Receive)
      return receive();
    bool all = true;
    for (int q = 0; q < c->size; ++q) {
      std::optional<std::string> &message = got[size_t(q)];
      if (q == c->rank || message)
        continue;
      message = c->root->mailbox.take(name(q, c->rank));
      if (message && !agrees(q, *message))
        return Progress::Failed;
      all &= message.has_value();
    }
    if (!all)
      return Progress::Blocked;
    finish();
    return Progress::Done;
  }

private:
  std::string name(int from, int to) const {
    return c->name(isPair(work.call) ? "p" : "c", number, from, to);
  }
  void post(const std::vector<std::string> &names, const void *data, size_t bytes) {
    const Head head{int(work.call), work.type, work.reduction, isPair(work.call) ? 0 : work.peer,
                    work.count};
    c->root->mailbox.post(names, {reinterpret_cast<const char *>(&head), sizeof head},
                          {static_cast<const char *>(data), bytes});
  }
  static CommWork workOf(const std::string &message) {
    Head head{};
    std::memcpy(&head, message.data(), std::min(message.size(), sizeof head));
    CommWork work;
    work.call = CommCall(head.call);
    work.type = head.type;
    work.reduction = head.reduction;
    work.peer = head.root;
    work.count = head.count;
    return work;
  }
  const char *dataFrom(int q) const {
    if (q != c->rank)
      return got[size_t(q)]->data() + sizeof(Head);
    const char *own = static_cast<const char *>(work.send);
    return work.call == CommCall::ReduceScatter ? own + size_t(q) * work.bytes() : own;
  }

  bool disagree(const std::string &how) {
    reportError(c->device, CUDA_ERROR_LAUNCH_FAILED,
                "ranks disagree in operation " + std::to_string(number) + " of " + c->id + ": " +
                    how);
    return false;
  }
  bool agrees(int q, const std::string &message) {
    CommWork other = workOf(message);
    bool equal = other.call == work.call && other.type == work.type && other.count == work.count &&
                 other.reduction == work.reduction && other.peer == work.peer;
    return equal || disagree("rank " + std::to_string(c->rank) + " is in " + work.describe() +
                             ", rank " + std::to_string(q) + " in " + other.describe());
  }

  Progress receive() {
    std::optional<std::string> message = c->root->mailbox.take(name(work.peer, c->rank));
    if (!message)
      return Progress::Blocked;
    CommWork other = workOf(*message);
    if (other.bytes() != work.bytes() || other.type != work.type) {
      disagree("rank " + std::to_string(work.peer) + " sends " + std::to_string(other.count) +
               " elements of type " + std::to_string(other.type) + " to rank " +
               std::to_string(c->rank) + ", which expects " + std::to_string(work.count) +
               " of type " + std::to_string(work.type));
      return Progress::Failed;
    }
    copy(work.receive, message->data() + sizeof(Head), work.bytes());
    return Progress::Done;
  }

  static void copy(void *to, const void *from, size_t bytes) {
    if (bytes > 0 && to != from)
      std::memmove(to, from, bytes);
  }

  void finish() {
    const size_t bytes = work.bytes();
    switch (work.call) {
    case CommCall::Broadcast:
      return copy(work.receive, dataFrom(work.peer), bytes);
    case CommCall::AllGather:
      for (int q = 0; q < c->size; ++q)
        copy(static_cast<char *>(work.receive) + size_t(q) * bytes, dataFrom(q), bytes);
      return;
    case CommCall::Reduce:
      if (c->rank != work.peer)
        return;
      [[fallthrough]];
    default:
      break;
    }
    std::string sum(dataFrom(0), bytes);
    beginReduction(sum.data(), work.count, work.type, work.reduction, c->size);
    for (int q = 1; q < c->size; ++q) {
      std::string part(dataFrom(q), bytes);
      beginReduction(part.data(), work.count, work.type, work.reduction, c->size);
      reduceInto(sum.data(), part.data(), work.count, work.type, work.reduction);
    }
    endReduction(sum.data(), work.count, work.type, work.reduction, c->size);
    copy(work.receive, sum.data(), bytes);
  }

  const std::shared_ptr<Communicator> c;
  const CommWork work;
  uint64_t number = 0;
  std::vector<std::optional<std::string>> got;
};

namespace {

/// The works of a group go on together: a send and a receive need each other.
class RunningGroup {
public:
  RunningGroup(std::shared_ptr<Communicator> communicator, const std::vector<CommWork> &works)
      : c(std::move(communicator)) {
    if (c->isAborted())
      return;
    for (const CommWork &work : works) {
      if (++c->root->started == c->root->failing) {
        c->failLater(ncclRemoteError, "an error that CUDA_EMULATED_NCCL_ERROR asks for, in " +
                                          work.describe() + " of " + c->describe());
        lost = true;
        return;
      }
      open.push_back(std::make_unique<Running>(c, work));
    }
    try {
      for (const auto &one : open)
        one->show();
    } catch (const std::runtime_error &error) {
      c->fail(ncclSystemError, error.what());
      lost = true;
    }
    wake();
  }

  Progress go() {
    if (c->isAborted())
      return Progress::Done;
    if (lost)
      return Progress::Blocked;
    bool changed = false;
    for (auto &one : open) {
      if (!one)
        continue;
      switch (one->go()) {
      case Progress::Failed:
        return Progress::Failed;
      case Progress::Blocked:
        break;
      case Progress::Done:
        one = nullptr;
        changed = true;
      }
    }
    std::erase(open, nullptr);
    if (changed)
      wake(); // who has sent is done
    return open.empty() ? Progress::Done : Progress::Blocked;
  }

private:
  const std::shared_ptr<Communicator> c;
  std::vector<std::unique_ptr<Running>> open;
  bool lost = false; ///< it stays in flight until the communicator is aborted
};

} // namespace

ncclResult_t Communicator::enqueue(CUstream stream, std::vector<CommWork> works) {
  Operation operation;
  for (const CommWork &work : works) {
    operation.name += (operation.name.empty() ? "" : ", ") + work.describe();
    touch(*this, work, operation.reads, operation.writes);
  }
  operation.name += ", " + describe();
  auto empty = [](const Region &region) { return region.bytes == 0; };
  std::erase_if(operation.reads, empty);
  std::erase_if(operation.writes, empty);
  operation.start = [self = shared_from_this(), works = std::move(works)] {
    auto running = std::make_shared<RunningGroup>(self, works);
    return std::function<Progress()>([running] { return running->go(); });
  };
  CUresult result = emulator::enqueue(stream, std::move(operation));
  markCalled();
  if (result == CUDA_SUCCESS)
    return ncclSuccess;
  setLastError("the stream has failed (error " + std::to_string(result) + " of the driver)");
  return ncclUnhandledCudaError;
}

} // namespace shardc::emulator
