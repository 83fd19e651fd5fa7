// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/FailureWords.h"

#include "runtime/support/Failure.h"
#include "runtime/support/Types.h"

#include <algorithm>

namespace shardc::rt {

namespace {

constexpr size_t wordsOfBlock = 128;

} // namespace

FailureWords::~FailureWords() {
  for (Words *block : blocks)
    plugin.release(device, block);
  for (auto &[group, words] : groups)
    if (words.copied)
      plugin.release_pinned(device, words.copied);
}

template <typename Function> void FailureWords::on(const CollectiveCall &call, Function function) {
  char message[SHARDRT_MESSAGE_BYTES];
  message[0] = '\0';
  shardrt_status status = function(message);
  message[SHARDRT_MESSAGE_BYTES - 1] = '\0';
  if (status != SHARDRT_OK)
    throw Failure(status,
                  describe(*call.collective) + ": " + (message[0] ? message : statusName(status)));
}

void FailureWords::begin() {
  used = 0;
  passed = nullptr;
  known.clear();
  for (auto &[group, words] : groups) {
    words.seen = nullptr;
    if (words.copied)
      *words.copied = 0;
  }
}

const void *FailureWords::offer(const CollectiveCall &call, void *stream) {
  if (!errorWord)
    return nullptr;
  if (used == blocks.size() * wordsOfBlock) {
    void *made = nullptr;
    on(call, [&](char *message) {
      return plugin.allocate(device, wordsOfBlock * sizeof(Words), &made, message);
    });
    blocks.push_back(static_cast<Words *>(made));
  }
  OfGroup &group = groups[call.group];
  if (!group.copied) {
    void *made = nullptr;
    on(call, [&](char *message) {
      return plugin.allocate_pinned(device, sizeof(uint64_t), &made, message);
    });
    group.copied = static_cast<uint64_t *>(made);
    *group.copied = 0;
  }
  Words *words = blocks[used / wordsOfBlock] + used % wordsOfBlock;
  ++used;
  known[&call] = {words, false};
  const void *of[] = {errorWord, passed};
  largest(call, of, &words->offered, stream);
  return &words->offered;
}

void FailureWords::got(const CollectiveCall &call, std::span<const void *const> others,
                       void *stream) {
  if (!errorWord || std::ranges::none_of(others, [](const void *word) { return word; }))
    return;
  OfCall &own = known.at(&call);
  Words &words = *own.words;
  OfGroup &group = groups[call.group];
  std::vector<const void *> of(others.begin(), others.end());
  of.push_back(group.seen);
  largest(call, of, &words.seen, stream);
  group.seen = &words.seen;
  own.areSeen = true;
  on(call, [&](char *message) {
    return plugin.copy(device, group.copied, &words.seen, sizeof(uint64_t), stream, message);
  });
}

void FailureWords::passOn(const CollectiveCall &call, void *compute) {
  auto found = known.find(&call);
  if (found == known.end() || !found->second.areSeen)
    return;
  Words &words = *found->second.words;
  const void *of[] = {passed, &words.seen};
  largest(call, of, &words.passed, compute);
  passed = &words.passed;
}

bool FailureWords::onlyOthersFailed() const {
  return errorCopy && *errorCopy == 0 && std::ranges::any_of(groups, [](const auto &entry) {
           return entry.second.copied &&
                  *static_cast<volatile uint64_t *>(entry.second.copied) != 0;
         });
}

void FailureWords::largest(const CollectiveCall &call, std::span<const void *const> of,
                           void *result, void *stream) {
  shardrt_peer_reduction made{};
  made.type = SHARDRT_I64;
  made.reduction = SHARDRT_MAX;
  made.count = made.rows = made.n_results = 1;
  made.results[0] = result;
  for (const void *word : of)
    if (word)
      made.sources[made.n_sources++] = word;
  on(call, [&](char *message) {
    return made.n_sources == 1
               ? plugin.copy(device, result, made.sources[0], sizeof(uint64_t), stream, message)
               : plugin.peers->reduce(device, &made, stream, message);
  });
}

} // namespace shardc::rt
