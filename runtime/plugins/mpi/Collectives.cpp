// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/mpi/Collectives.h"

#include "runtime/plugins/mpi/Operations.h"
#include "runtime/plugins/mpi/Process.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace shardc::plugin {

Transfer::Transfer(const shardrt_transfer &transfer, MPI_Comm group, std::function<bool()> stop,
                   int64_t most)
    : t(transfer), group(group), stop(std::move(stop)), most(most),
      width(elementBytes(transfer.type)) {}

void Transfer::run() {
  switch (t.kind) {
  case SHARDRT_ALL_TO_ALL:
    return exchange(t.send_counts, t.send_offsets, t.receive_counts, t.receive_offsets);
  case SHARDRT_ALL_GATHER:
    return allGather();
  case SHARDRT_BROADCAST:
    return broadcast();
  case SHARDRT_ALL_REDUCE:
    return allReduce();
  default:
    return reduceScatter();
  }
}

/// Begins one operation and waits for it.
template <typename Begin>
void Transfer::perform(const char *function, int64_t elements, Begin begin) {
  requests.assign(1, MPI_REQUEST_NULL);
  check(begin(requests.data()), function);
  waitFor(requests, elements * width, stop, function);
}

class Transfer::Blocks {
public:
  Blocks(const int64_t *blockCounts, const int64_t *blockOffsets, int32_t members, int64_t width,
         int64_t most, int64_t shift)
      : counts(size_t(members)), displacements(size_t(members)),
        types(size_t(members), movedType(width)) {
    for (size_t q = 0; q < size_t(members); ++q) {
      int64_t count = blockCounts[q], offset = blockOffsets[q] * width + shift;
      if (count == 0)
        continue;
      if (count <= most && offset <= INT32_MAX && offset <= most * width) {
        counts[q] = int(count);
        displacements[q] = int(offset); // in bytes
        continue;
      }
      std::vector<int> lengths;
      std::vector<MPI_Aint> places;
      for (int64_t done = 0; done < count; done += most) {
        lengths.push_back(int(std::min(most, count - done)));
        places.push_back(MPI_Aint(offset + done * width));
      }
      MPI_Datatype type = MPI_DATATYPE_NULL;
      check(MPI_Type_create_hindexed(int(lengths.size()), lengths.data(), places.data(),
                                     movedType(width), &type),
            "MPI_Type_create_hindexed");
      made.push_back(type);
      check(MPI_Type_commit(&type), "MPI_Type_commit");
      types[q] = type;
      counts[q] = 1;
    }
  }
  /// After a failure it is not called, since no function of MPI is then.
  void release() {
    for (MPI_Datatype &type : made)
      check(MPI_Type_free(&type), "MPI_Type_free");
  }
  Blocks(const Blocks &) = delete;

  std::vector<int> counts, displacements;
  std::vector<MPI_Datatype> types;

private:
  std::vector<MPI_Datatype> made;
};

void Transfer::exchange(const int64_t *sendCounts, const int64_t *sendOffsets,
                        const int64_t *receiveCounts, const int64_t *receiveOffsets) {
  // Blocks that are sent may lie between those that are received, as in an all-gather of blocks
  // that are in their places. Open MPI takes equal addresses for MPI_IN_PLACE, and MPICH for a
  // mistake: let this one begin elsewhere.
  const int64_t shift = t.send == t.receive ? 64 : 0;
  // No element may be there, and no memory either, so that it is a number that is moved.
  auto *from =
      reinterpret_cast<const char *>(reinterpret_cast<uintptr_t>(t.send) - uintptr_t(shift));
  Blocks sent(sendCounts, sendOffsets, t.n_members, width, most, shift);
  Blocks received(receiveCounts, receiveOffsets, t.n_members, width, most, 0);
  int64_t elements = std::accumulate(receiveCounts, receiveCounts + t.n_members, int64_t(0));
  perform("MPI_Ialltoallw", elements, [&](MPI_Request *request) {
    return MPI_Ialltoallw(from, sent.counts.data(), sent.displacements.data(), sent.types.data(),
                          t.receive, received.counts.data(), received.displacements.data(),
                          received.types.data(), group, request);
  });
  sent.release();
  received.release();
}

void Transfer::allGather() {
  const auto n = size_t(t.n_members), p = size_t(t.position);
  char *own = at(t.receive, t.receive_offsets[p]);
  int64_t total = std::accumulate(t.receive_counts, t.receive_counts + n, int64_t(0));
  // All members have the same counts, and decide the same.
  if (total > most) {
    if (t.count > 0 && t.send != own)
      std::memcpy(own, t.send, size_t(t.count * width));
    std::vector<int64_t> send(n, t.count), none(n, 0),
        receive(t.receive_counts, t.receive_counts + n);
    send[p] = receive[p] = 0;
    return exchange(send.data(), none.data(), receive.data(), t.receive_offsets);
  }
  std::vector<int> counts(n), offsets(n);
  for (size_t q = 0; q < n; ++q) {
    if (t.receive_offsets[q] > INT32_MAX)
      throw Failure{SHARDRT_INTERNAL, "a block of few elements is far from the others"};
    counts[q] = int(t.receive_counts[q]);
    offsets[q] = int(t.receive_offsets[q]);
  }
  MPI_Datatype type = movedType(width);
  const void *from = t.send == own || t.count == 0 ? MPI_IN_PLACE : t.send;
  perform("MPI_Iallgatherv", total, [&](MPI_Request *request) {
    return MPI_Iallgatherv(from, int(t.count), type, t.receive, counts.data(), offsets.data(), type,
                           group, request);
  });
}

void Transfer::broadcast() {
  if (t.position == t.root && t.count > 0 && t.send != t.receive)
    std::memcpy(t.receive, t.send, size_t(t.count * width));
  for (int64_t done = 0; done < t.count; done += most) {
    int64_t count = std::min(most, t.count - done);
    perform("MPI_Ibcast", count, [&](MPI_Request *request) {
      return MPI_Ibcast(at(t.receive, done), int(count), movedType(width), t.root, group, request);
    });
  }
}

void Transfer::allReduce() {
  Operation operation = operationOf(t.type, t.reduction);
  for (int64_t done = 0; done < t.count; done += most) {
    int64_t count = std::min(most, t.count - done);
    void *into = at(t.receive, done);
    const void *from = t.send == t.receive ? MPI_IN_PLACE : at(const_cast<void *>(t.send), done);
    perform("MPI_Iallreduce", 2 * count, [&](MPI_Request *request) {
      return MPI_Iallreduce(from, into, int(count), operation.type, operation.op, group, request);
    });
  }
  if (t.reduction == SHARDRT_AVG)
    average(t.type, t.receive, t.count, t.n_members);
}

void Transfer::reduceScatter() {
  const auto n = size_t(t.n_members);
  Operation operation = operationOf(t.type, t.reduction);
  std::vector<int64_t> starts(n);
  for (size_t q = 1; q < n; ++q)
    starts[q] = starts[q - 1] + t.send_counts[q - 1];
  int64_t total = starts[n - 1] + t.send_counts[n - 1];
  // MPI wants the blocks one behind the other, and the result elsewhere.
  const char *from = static_cast<const char *>(t.send);
  const char *result = static_cast<const char *>(t.receive);
  bool apart = result + t.count * width <= from || result >= from + total * width;
  std::vector<char> lined;
  if (!apart || !std::equal(starts.begin(), starts.end(), t.send_offsets)) {
    lined.resize(size_t(total * width));
    for (size_t q = 0; q < n; ++q)
      if (t.send_counts[q] > 0)
        std::memcpy(lined.data() + starts[q] * width, from + t.send_offsets[q] * width,
                    size_t(t.send_counts[q] * width));
    from = lined.data();
  }
  if (total <= most) {
    std::vector<int> counts(t.send_counts, t.send_counts + n);
    perform("MPI_Ireduce_scatter", total, [&](MPI_Request *request) {
      return MPI_Ireduce_scatter(from, t.receive, counts.data(), operation.type, operation.op,
                                 group, request);
    });
  } else {
    for (size_t q = 0; q < n; ++q)
      for (int64_t done = 0; done < t.send_counts[q]; done += most) {
        int64_t count = std::min(most, t.send_counts[q] - done);
        bool mine = int32_t(q) == t.position;
        perform("MPI_Ireduce", count, [&](MPI_Request *request) {
          return MPI_Ireduce(from + (starts[q] + done) * width,
                             mine ? at(t.receive, done) : nullptr, int(count), operation.type,
                             operation.op, int(q), group, request);
        });
      }
  }
  if (t.reduction == SHARDRT_AVG)
    average(t.type, t.receive, t.count, t.n_members);
}

} // namespace shardc::plugin
