// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/model/RootTensors.h"

#include "runtime/support/Bytes.h"
#include "runtime/support/Copy.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

namespace shardc::rt {

namespace {

constexpr size_t pieceAlignment = 64;

const shardrt_collective_operand pairwiseBytes{SHARDRT_U8, 1, 0, 0};
const shardrt_collective_operand wholeBytes{SHARDRT_U8, 1, -1, -1};

// Of static life, like the descriptors of an artifact: other ranks' messages may name them at any
// time.
constexpr shardrt_collective overAllRanks(const char *name, uint32_t kind,
                                          const shardrt_collective_operand &operand) {
  shardrt_collective collective{};
  collective.name = name;
  collective.location = "";
  collective.operands = &operand;
  collective.kind = kind;
  collective.n_operands = 1;
  return collective;
}
const shardrt_collective inputScatter =
    overAllRanks("the scatter of an input of rank 0", SHARDRT_ALL_TO_ALL, pairwiseBytes);
const shardrt_collective inputBroadcast =
    overAllRanks("the broadcast of an input of rank 0", SHARDRT_BROADCAST, wholeBytes);
const shardrt_collective rootGather =
    overAllRanks("the gather of an output on rank 0", SHARDRT_ALL_TO_ALL, pairwiseBytes);

/// Cuts the parts of all ranks but rank 0, so that all pieces of a round fit in the bound.
std::vector<std::vector<Slice>> cutParts(RootMover::Parts parts, int64_t roundBytes,
                                         int64_t elementBytes) {
  int64_t holders = std::count_if(parts.begin() + 1, parts.end(),
                                  [](auto &part) { return part && part->elements() > 0; });
  int64_t most = std::max<int64_t>(1, roundBytes / elementBytes / std::max<int64_t>(holders, 1));
  std::vector<std::vector<Slice>> pieces(parts.size());
  for (size_t rank = 1; rank < parts.size(); ++rank)
    if (parts[rank])
      pieces[rank] = parts[rank]->pieces(most);
  return pieces;
}

bool isWhole(const std::optional<Slice> &part) { return part && part->local == part->global; }

} // namespace

std::vector<int64_t> stridesOf(const shardrt_tensor &tensor) {
  std::vector<int64_t> strides(size_t(tensor.rank));
  if (tensor.strides)
    strides.assign(tensor.strides, tensor.strides + tensor.rank);
  else
    denseStrides({tensor.extents, size_t(tensor.rank)}, strides.data());
  return strides;
}

bool usesRoot(std::span<const shardrt_tensor> inputs, std::span<const shardrt_tensor> outputs) {
  auto isRoot = [](const shardrt_tensor &tensor) { return tensor.scope == SHARDRT_ROOT; };
  return std::ranges::any_of(inputs, isRoot) || std::ranges::any_of(outputs, isRoot);
}

std::string RootStatement::tensorsOf(std::span<const shardrt_tensor> inputs,
                                     std::span<const shardrt_tensor> outputs) {
  std::string text;
  auto list = [&](std::span<const shardrt_tensor> tensors, const char *what) {
    for (size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].scope == SHARDRT_ROOT)
        text += (text.empty() ? "" : ", ") + (what + std::to_string(i));
  };
  list(inputs, "input ");
  list(outputs, "output ");
  return text.empty() ? "none" : text;
}

std::string RootStatement::encode() const {
  ByteWriter writer;
  writer(entry, tensors, int32_t(status), reason, extents, note);
  return std::move(writer.bytes);
}

RootStatement RootStatement::decode(std::string_view text, uint32_t rank) {
  ByteReader reader(text);
  RootStatement out;
  int32_t status = 0;
  reader(out.entry, out.tensors, status, out.reason, out.extents, out.note);
  if (!reader.complete())
    throw Failure(SHARDRT_MISMATCH, "what rank " + std::to_string(rank) +
                                        " said about its arguments cannot be read: all ranks need "
                                        "the same version of the runtime");
  out.status = shardrt_status(status);
  return out;
}

std::string rootDifferences(std::span<const RootStatement> everybody) {
  std::string text;
  for (auto [fact, name] : {std::pair(&RootStatement::entry, "the entry that they run"),
                            std::pair(&RootStatement::tensors, "tensors of SHARDRT_ROOT")}) {
    std::map<std::string, std::vector<uint32_t>> ranksOf;
    for (uint32_t r = 0; r < everybody.size(); ++r)
      ranksOf[everybody[r].*fact].push_back(r);
    if (ranksOf.size() == 1)
      continue;
    text += (text.empty() ? "ranks differ in " : "; ") + (name + std::string(":"));
    const char *separator = " ";
    for (auto &[value, ranks] : ranksOf) {
      text += separator + value + " on " + rankList(ranks);
      separator = ", ";
    }
  }
  return text;
}

void RootMover::scatter(Parts parts, void *mine, const shardrt_tensor *whole,
                        int64_t elementBytes) {
  if (std::ranges::all_of(parts, isWhole)) {
    if (parts.size() > 1)
      broadcast(*parts[0], static_cast<char *>(mine), whole, elementBytes);
    return;
  }
  move(parts, false, static_cast<char *>(mine), whole, elementBytes);
}

void RootMover::broadcast(const Slice &part, char *mine, const shardrt_tensor *whole,
                          int64_t elementBytes) {
  const std::vector<int64_t> strides = whole ? stridesOf(*whole) : std::vector<int64_t>();
  for (const Slice &piece : part.pieces(std::max<int64_t>(1, roundBytes / elementBytes))) {
    int64_t bytes = piece.elements() * elementBytes;
    char *data = mine;
    if (self == 0) {
      // The tensor itself is the caller's, and may be read only: a communicator writes to what it
      // broadcasts.
      packed.reserve(memory.allocator(), size_t(bytes), pieceAlignment,
                     "parts of a tensor of rank 0");
      data = reinterpret_cast<char *>(packed.data());
      memory.take(data, piece, whole->data, strides.data(), elementBytes);
    } else {
      mine += bytes;
    }
    shardrt_collective_tensor operand{data, data, &bytes, nullptr, nullptr, 0};
    collective(inputBroadcast, operand);
  }
}

void RootMover::gather(Parts parts, const void *mine, const shardrt_tensor *whole,
                       int64_t elementBytes) {
  move(parts, true, static_cast<char *>(const_cast<void *>(mine)), whole, elementBytes);
}

void RootMover::move(Parts parts, bool toRoot, char *mine, const shardrt_tensor *whole,
                     int64_t elementBytes) {
  const std::vector<std::vector<Slice>> pieces = cutParts(parts, roundBytes, elementBytes);
  size_t rounds = 0;
  for (const auto &ofRank : pieces)
    rounds = std::max(rounds, ofRank.size());
  const std::vector<int64_t> strides = whole ? stridesOf(*whole) : std::vector<int64_t>();
  std::vector<int64_t> counts(parts.size()), none(parts.size(), 0);
  for (size_t round = 0; round < rounds; ++round) {
    // What goes between this rank and each other one: on rank 0 their pieces, elsewhere the own.
    auto bytesOf = [&](size_t rank) {
      return round < pieces[rank].size() ? pieces[rank][round].elements() * elementBytes : 0;
    };
    for (size_t rank = 0; self == 0 && rank < parts.size(); ++rank)
      counts[rank] = bytesOf(rank);
    if (self != 0)
      counts[0] = bytesOf(self);
    int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t(0));
    char *data = mine;
    if (self == 0) {
      packed.reserve(memory.allocator(), size_t(total), pieceAlignment,
                     "parts of a tensor of rank 0");
      data = reinterpret_cast<char *>(packed.data());
    }
    auto eachPiece = [&](auto &&visit) {
      char *at = data;
      for (size_t rank = 1; self == 0 && rank < parts.size(); ++rank)
        if (counts[rank] > 0) {
          visit(at, pieces[rank][round]);
          at += counts[rank];
        }
    };
    bool sends = (self == 0) != toRoot;
    if (sends)
      eachPiece([&](char *at, const Slice &piece) {
        memory.take(at, piece, whole->data, strides.data(), elementBytes);
      });
    int64_t leaving = sends ? total : 0;
    shardrt_collective_tensor operand{
        sends ? data : nullptr,         sends ? nullptr : data,         &leaving,
        (sends ? none : counts).data(), (sends ? counts : none).data(), 0};
    collective(toRoot ? rootGather : inputScatter, operand);
    if (!sends)
      eachPiece([&](const char *at, const Slice &piece) {
        memory.give(whole->data, strides.data(), piece, at, elementBytes);
      });
    if (self != 0)
      mine += total;
  }
}

} // namespace shardc::rt
