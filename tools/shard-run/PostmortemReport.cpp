// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shard-run/PostmortemReport.h"

#include "runtime/flight/Postmortem.h"
#include "support/JsonText.h"

#include <cstdio>
#include <ctime>

namespace shardc::run {

namespace {

using rt::FlightCollective, rt::FlightMembers, rt::FlightRecord, rt::Postmortem;

/// Lines of the timeline in the text; JSON has all.
constexpr size_t mostLines = 40;

/// "rank 3", "ranks 0, 1 and 3"; long runs as "ranks 0 to 63".
std::string ranksText(const FlightMembers &ranks) {
  bool isRange = ranks.size() > 3;
  for (size_t i = 1; i < ranks.size(); ++i)
    isRange &= ranks[i] == ranks[i - 1] + 1;
  if (isRange)
    return "ranks " + std::to_string(ranks.front()) + " to " + std::to_string(ranks.back());
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return text;
}

std::string utc(int64_t us) {
  std::time_t whole = std::time_t(us / 1000000);
  std::tm parts{};
  gmtime_r(&whole, &parts);
  char text[64], out[80];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  std::snprintf(out, sizeof out, "%s.%06d UTC", text, int(us % 1000000));
  return out;
}

std::string milliseconds(int64_t us) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", double(us) / 1e3);
  return text;
}

std::string placed(const FlightCollective &c) {
  return c.location.empty() ? c.name : c.name + " (" + c.location + ")";
}

/// What each rank says that it was in: "all_reduce.0 of run 2 on ranks 0 and 1, ...".
std::string sidesOf(const Postmortem::Call &call) {
  std::map<std::string, FlightMembers> sides;
  for (auto &[rank, c] : call.ranks)
    sides[placed(c) + " of run " + std::to_string(c.run)].push_back(rank);
  std::string text;
  for (auto &[what, ranks] : sides)
    text += (text.empty() ? "" : ", ") + what + " on " + ranksText(ranks);
  return text;
}

void printCall(const Postmortem &merged, const Postmortem::Call &call, int64_t failed) {
  const FlightCollective &any = call.ranks.begin()->second;
  std::printf("%14s  %s, run %llu, %lld bytes, of %s\n",
              milliseconds(call.firstBeginUs() - failed).c_str(), placed(any).c_str(),
              static_cast<unsigned long long>(any.run), static_cast<long long>(any.bytes),
              ranksText(call.members).c_str());
  for (uint32_t rank : call.members) {
    auto found = call.ranks.find(rank);
    std::string text;
    if (found == call.ranks.end())
      text = merged.of(rank) ? "did not begin it" : "no record";
    else if (const FlightCollective &c = found->second; c.endUs)
      text = milliseconds(c.beginUs - failed) + " to " + milliseconds(*c.endUs - failed) +
             (c.status == "ok" ? "" : ", " + c.status);
    else
      text = "from " + milliseconds(c.beginUs - failed) + ", not finished";
    if (found != call.ranks.end() && !call.agrees())
      text += ", in " + placed(found->second) + " of run " + std::to_string(found->second.run);
    std::printf("%14s    rank %u: %s\n", "", rank, text.c_str());
  }
}

void printText(const Postmortem &merged) {
  const FlightRecord &first = merged.records[merged.first];
  FlightMembers present;
  for (const FlightRecord &record : merged.records)
    present.push_back(record.rank);
  std::printf("%s: a world of %u, with records of %s\n", first.artifact.c_str(), merged.worldSize,
              ranksText(present).c_str());
  if (!merged.missing.empty())
    std::printf("missing: %s left no record (killed, stopped, or not failed)\n",
                ranksText(merged.missing).c_str());
  std::printf("\nfirst failure: rank %u, run %llu, %s: %s\n  %s\n", first.rank,
              static_cast<unsigned long long>(first.run), utc(first.writtenUs).c_str(),
              first.status.c_str(), first.message.c_str());
  std::printf("\nwhere the ranks were then:\n");
  for (const FlightRecord &record : merged.records)
    std::printf("  rank %u (pid %lld on %s), run %llu: %s\n", record.rank,
                static_cast<long long>(record.pid), record.host.c_str(),
                static_cast<unsigned long long>(record.run), merged.whereabouts(record).c_str());
  if (!merged.behind.empty())
    std::printf("\nbehind:\n");
  for (const Postmortem::Behind &behind : merged.behind)
    std::printf("  rank %u had begun %llu collectives of %s, others %llu%s\n", behind.rank,
                static_cast<unsigned long long>(behind.begun), ranksText(behind.members).c_str(),
                static_cast<unsigned long long>(behind.mostBegun),
                behind.next.empty() ? "" : (": it had not come to " + behind.next).c_str());
  if (merged.disagreement) {
    const Postmortem::Call &call = merged.calls[*merged.disagreement];
    std::printf("\nfirst disagreement: collective %llu of %s is %s\n",
                static_cast<unsigned long long>(call.sequence), ranksText(call.members).c_str(),
                sidesOf(call).c_str());
  }
  if (merged.calls.empty())
    return;
  std::printf("\nlast collectives, in ms from the first failure:\n");
  size_t skipped = merged.calls.size() > mostLines ? merged.calls.size() - mostLines : 0;
  if (skipped > 0)
    std::printf("  (%zu earlier ones: --format json)\n", skipped);
  for (size_t i = skipped; i < merged.calls.size(); ++i)
    printCall(merged, merged.calls[i], first.writtenUs);
}

std::string numbers(const FlightMembers &ranks) {
  std::string text;
  for (uint32_t rank : ranks)
    text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return "[" + text + "]";
}

/// Calls print(i) for each of n things, with commas between.
template <typename Print> void listed(size_t n, Print print) {
  for (size_t i = 0; i < n; ++i) {
    std::printf(i ? ",\n  " : "\n  ");
    print(i);
  }
}

void printCallJson(const Postmortem::Call &call) {
  std::printf("{\"ranks\": %s, \"sequence\": %llu, \"agree\": %s, \"records\": [",
              numbers(call.members).c_str(), static_cast<unsigned long long>(call.sequence),
              call.agrees() ? "true" : "false");
  const char *separator = "";
  for (auto &[rank, c] : call.ranks) {
    std::printf("%s{\"rank\": %u, \"run\": %llu, \"name\": %s, \"location\": %s, \"kind\": %s, "
                "\"bytes\": %lld, \"begin_us\": %lld, \"end_us\": %s, \"status\": %s}",
                separator, rank, static_cast<unsigned long long>(c.run), jsonString(c.name).c_str(),
                jsonString(c.location).c_str(), jsonString(c.kind).c_str(),
                static_cast<long long>(c.bytes), static_cast<long long>(c.beginUs),
                c.endUs ? std::to_string(*c.endUs).c_str() : "null", jsonString(c.status).c_str());
    separator = ", ";
  }
  std::printf("]}");
}

void printJson(const Postmortem &merged, const std::vector<std::string> &problems) {
  const FlightRecord &first = merged.records[merged.first];
  std::printf("{\"artifact\": %s, \"world_size\": %u, \"missing\": %s, \"first_failure\": %u,\n"
              " \"ranks\": [",
              jsonString(first.artifact).c_str(), merged.worldSize, numbers(merged.missing).c_str(),
              first.rank);
  listed(merged.records.size(), [&](size_t i) {
    const FlightRecord &r = merged.records[i];
    std::printf("{\"rank\": %u, \"host\": %s, \"pid\": %lld, \"run\": %llu, \"written_us\": %lld, "
                "\"status\": %s,\n   \"message\": %s,\n   \"where\": %s, \"op\": %s, "
                "\"op_location\": %s}",
                r.rank, jsonString(r.host).c_str(), static_cast<long long>(r.pid),
                static_cast<unsigned long long>(r.run), static_cast<long long>(r.writtenUs),
                jsonString(r.status).c_str(), jsonString(r.message).c_str(),
                jsonString(merged.whereabouts(r)).c_str(), jsonString(r.op).c_str(),
                jsonString(r.opLocation).c_str());
  });
  std::printf("],\n \"behind\": [");
  listed(merged.behind.size(), [&](size_t i) {
    const Postmortem::Behind &b = merged.behind[i];
    std::printf("{\"rank\": %u, \"ranks\": %s, \"begun\": %llu, \"most_begun\": %llu, "
                "\"next\": %s}",
                b.rank, numbers(b.members).c_str(), static_cast<unsigned long long>(b.begun),
                static_cast<unsigned long long>(b.mostBegun), jsonString(b.next).c_str());
  });
  std::printf("],\n \"disagreement\": ");
  if (merged.disagreement)
    printCallJson(merged.calls[*merged.disagreement]);
  else
    std::printf("null");
  std::printf(",\n \"timeline\": [");
  listed(merged.calls.size(), [&](size_t i) { printCallJson(merged.calls[i]); });
  std::printf("],\n \"problems\": [");
  listed(problems.size(), [&](size_t i) { std::printf("%s", jsonString(problems[i]).c_str()); });
  std::printf("]}\n");
}

} // namespace

int printPostmortem(const std::string &folder, bool json) {
  std::vector<std::string> problems;
  std::vector<rt::NamedRecord> records = rt::readRecords(folder, problems);
  bool unreadable = !problems.empty();
  std::optional<Postmortem> merged = rt::mergeRecords(std::move(records), problems);
  for (const std::string &problem : problems)
    std::fprintf(stderr, "shard-run: %s: %s\n", unreadable ? "error" : "warning", problem.c_str());
  if (!merged) {
    if (problems.empty())
      std::fprintf(stderr, "shard-run: error: %s: there is no flight record (rank-N.json)\n",
                   folder.c_str());
    return 1;
  }
  if (json)
    printJson(*merged, problems);
  else
    printText(*merged);
  return std::fflush(stdout) == 0 && !unreadable ? 0 : 1;
}

} // namespace shardc::run
