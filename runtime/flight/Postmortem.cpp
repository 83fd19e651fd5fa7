// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/flight/Postmortem.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <tuple>

namespace shardc::rt {

namespace {

std::string placed(const std::string &name, const std::string &location) {
  return location.empty() ? name : name + " (" + location + ")";
}

std::string seconds(int64_t us) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f s", double(us) / 1e6);
  return text;
}

using CallKey = std::pair<FlightMembers, uint64_t>;

std::map<CallKey, Postmortem::Call> gatherCalls(const std::vector<FlightRecord> &records) {
  std::map<CallKey, Postmortem::Call> calls;
  for (const FlightRecord &record : records)
    for (const FlightCollective &collective : record.collectives) {
      Postmortem::Call &call = calls[{collective.members, collective.sequence}];
      call.members = collective.members;
      call.sequence = collective.sequence;
      call.ranks.emplace(record.rank, collective);
    }
  return calls;
}

/// How many collectives of a group a rank had begun by then. What it began afterwards it found
/// given up.
uint64_t begunBy(const FlightRecord &record, const FlightMembers &members, int64_t us) {
  uint64_t begun = 0;
  for (const FlightGroup &group : record.groups)
    if (group.members == members)
      begun = group.begun;
  for (const FlightCollective &collective : record.collectives)
    if (collective.members == members && collective.beginUs > us && begun > 0)
      --begun;
  return begun;
}

std::vector<Postmortem::Behind> findBehind(const Postmortem &merged,
                                           const std::map<CallKey, Postmortem::Call> &calls) {
  int64_t failed = merged.records[merged.first].writtenUs;
  std::map<FlightMembers, uint64_t> most;
  for (const FlightRecord &record : merged.records)
    for (const FlightGroup &group : record.groups)
      most[group.members] = std::max(most[group.members], begunBy(record, group.members, failed));
  std::vector<Postmortem::Behind> behind;
  for (auto &[members, mostBegun] : most)
    for (uint32_t rank : members) {
      const FlightRecord *record = merged.of(rank);
      if (!record)
        continue;
      uint64_t begun = begunBy(*record, members, failed);
      if (begun >= mostBegun)
        continue;
      auto next = calls.find({members, begun + 1});
      behind.push_back({rank, members, begun, mostBegun,
                        next == calls.end() ? std::string() : next->second.text()});
    }
  std::ranges::sort(behind, {}, &Postmortem::Behind::rank);
  return behind;
}

} // namespace

int64_t Postmortem::Call::firstBeginUs() const {
  int64_t first = ranks.begin()->second.beginUs;
  for (auto &[rank, collective] : ranks)
    first = std::min(first, collective.beginUs);
  return first;
}

bool Postmortem::Call::agrees() const {
  const FlightCollective &first = ranks.begin()->second;
  return std::ranges::all_of(ranks, [&](auto &entry) {
    const FlightCollective &other = entry.second;
    return other.name == first.name && other.kind == first.kind && other.run == first.run;
  });
}

std::string Postmortem::Call::text() const {
  return placed(ranks.begin()->second.name, ranks.begin()->second.location);
}

const FlightRecord *Postmortem::of(uint32_t rank) const {
  auto found = std::ranges::find(records, rank, &FlightRecord::rank);
  return found == records.end() ? nullptr : &*found;
}

std::string Postmortem::whereabouts(const FlightRecord &record) const {
  int64_t failed = records[first].writtenUs;
  const FlightCollective *last = nullptr, *later = nullptr;
  for (const FlightCollective &collective : record.collectives)
    (collective.beginUs > failed ? later : last) = &collective;
  std::string text;
  bool wasIn = last && last->run == record.run && (!last->endUs || last->status != "ok");
  if (wasIn)
    text = "in " + placed(last->name, last->location) + " for " + seconds(failed - last->beginUs);
  else if (!record.op.empty())
    text = "last seen in " + placed(record.op, record.opLocation);
  else
    text = "in no op";
  if (last && !wasIn)
    text +=
        ", after " + placed(last->name, last->location) + " of run " + std::to_string(last->run);
  if (later)
    text += "; it came to " + placed(later->name, later->location) + " " +
            seconds(later->beginUs - failed) + " after the failure";
  return text;
}

std::optional<Postmortem> mergeRecords(std::vector<NamedRecord> records,
                                       std::vector<std::string> &problems) {
  if (records.empty())
    return std::nullopt;
  const std::string world = std::ranges::max(records, {}, [](auto &named) {
                              return named.record.writtenUs;
                            }).record.world;
  std::ranges::sort(records, {}, [](auto &named) {
    return std::tuple(named.record.rank, -named.record.writtenUs, named.file);
  });
  Postmortem merged;
  for (NamedRecord &named : records) {
    std::string who = named.file + ": rank " + std::to_string(named.record.rank);
    if (named.record.world != world)
      problems.push_back(who + " of another launch, which is left out");
    else if (merged.of(named.record.rank))
      problems.push_back(who + " has another record, which is newer");
    else if (!merged.records.empty() && named.record.worldSize != merged.worldSize)
      problems.push_back(who + " is of a world of " + std::to_string(named.record.worldSize) +
                         " ranks, others are of " + std::to_string(merged.worldSize));
    else {
      merged.worldSize = named.record.worldSize;
      merged.records.push_back(std::move(named.record));
    }
  }
  for (uint32_t rank = 0; rank < merged.worldSize; ++rank)
    if (!merged.of(rank))
      merged.missing.push_back(rank);
  // A rank that was told of a failure is not the first, whatever its clock says.
  for (size_t i = 1; i < merged.records.size(); ++i) {
    auto order = [](const FlightRecord &record) {
      return std::pair(record.status == "aborted", record.writtenUs);
    };
    if (order(merged.records[i]) < order(merged.records[merged.first]))
      merged.first = i;
  }
  std::map<CallKey, Postmortem::Call> calls = gatherCalls(merged.records);
  merged.behind = findBehind(merged, calls);
  for (auto &[key, call] : calls)
    merged.calls.push_back(std::move(call));
  std::ranges::sort(merged.calls, {}, [](const Postmortem::Call &call) {
    return std::tuple(call.firstBeginUs(), call.members, call.sequence);
  });
  for (size_t i = 0; i < merged.calls.size() && !merged.disagreement; ++i)
    if (!merged.calls[i].agrees())
      merged.disagreement = i;
  return merged;
}

std::vector<NamedRecord> readRecords(const std::string &folder,
                                     std::vector<std::string> &problems) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".json" && it->is_regular_file(error))
      files.push_back(it->path().string());
  if (error)
    problems.push_back(folder + ": cannot read: " + error.message());
  std::ranges::sort(files);
  std::vector<NamedRecord> records;
  for (const std::string &file : files) {
    std::ifstream stream(file, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(stream), {}}, problem = "it cannot be read";
    std::optional<FlightRecord> record;
    if (stream.good() || stream.eof())
      record = FlightRecord::parse(text, problem);
    if (record)
      records.push_back({file, std::move(*record)});
    else
      problems.push_back(file + ": " + problem);
  }
  return records;
}

} // namespace shardc::rt
