// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shard-run/RunReport.h"

#include "support/JsonText.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace shardc::run {

namespace {

struct Statistics {
  double min, median, mean, max;
};

/// Of the steps after the first, which touches memory for the first time; of the only one if there
/// is one.
Statistics statistics(const Timing &timing) {
  std::vector<double> ms(timing.stepMs.begin() + (timing.stepMs.size() > 1 ? 1 : 0),
                         timing.stepMs.end());
  std::sort(ms.begin(), ms.end());
  size_t n = ms.size();
  double median = n % 2 ? ms[n / 2] : (ms[n / 2 - 1] + ms[n / 2]) / 2;
  return {ms.front(), median, std::accumulate(ms.begin(), ms.end(), 0.0) / double(n), ms.back()};
}

/// Steps times ranks: events of the first step are dropped if there are more.
double stepsRecorded(const Session &session, const Options &options) {
  return double(std::max(1, options.steps - 1)) * double(session.ranks());
}

void printTable(const char *title, const ProfileTable &table, double steps, double totalUs,
                bool bytes) {
  std::vector<std::pair<std::string, ProfileRow>> rows(table.begin(), table.end());
  std::sort(rows.begin(), rows.end(), [](auto &a, auto &b) {
    return a.second.us != b.second.us ? a.second.us > b.second.us : a.first < b.first;
  });
  std::printf("\n%10s %6s %8s %12s  %s\n", "ms", "%", "calls", bytes ? "bytes" : "", title);
  for (auto &[name, row] : rows)
    std::printf("%10.4f %6.1f %8.0f %12s  %s\n", row.us / 1e3 / steps,
                totalUs > 0 ? 100 * row.us / totalUs : 0.0, double(row.count) / steps,
                bytes ? std::to_string(int64_t(double(row.bytes) / steps)).c_str() : "",
                name.c_str());
}

} // namespace

void printSummary(const Session &session, const Options &options) {
  Statistics s = statistics(session.timing());
  if (!options.json) {
    std::printf("%s: %d ranks, %d step%s, median %.3f ms (min %.3f, max %.3f), loading %.1f ms\n",
                session.entry().name.c_str(), session.ranks(), options.steps,
                options.steps == 1 ? "" : "s", s.median, s.min, s.max, session.timing().loadMs);
    return;
  }
  const Profile &profile = session.profile();
  const shardrt_memory &memory = profile.memory;
  std::string times;
  if (options.recordsEvents()) {
    double steps = stepsRecorded(session, options);
    char text[160];
    std::snprintf(text, sizeof text,
                  " \"per_step_and_rank_ms\": {\"compute\": %.4f, \"wait\": %.4f, "
                  "\"communication\": %.4f},\n",
                  profile.computeUs / 1e3 / steps, profile.waitUs / 1e3 / steps,
                  profile.commUs / 1e3 / steps);
    times = text;
  }
  std::printf("{\"artifact\": %s, \"entry\": %s, \"ranks\": %d, \"steps\": %d,\n"
              " \"load_ms\": %.3f, \"first_step_ms\": %.4f,\n"
              " \"step_ms\": {\"min\": %.4f, \"median\": %.4f, \"mean\": %.4f, \"max\": %.4f},\n%s"
              " \"peak_memory_of_a_rank\": {\"arena_bytes\": %llu, \"parameter_bytes\": %llu, "
              "\"copied_bytes\": %llu, \"persistent_bytes\": %llu, \"scratch_bytes\": %llu},\n "
              "\"outputs\": [",
              jsonString(options.artifact).c_str(), jsonString(session.entry().name).c_str(),
              session.ranks(), options.steps, session.timing().loadMs,
              session.timing().stepMs.front(), s.min, s.median, s.mean, s.max, times.c_str(),
              static_cast<unsigned long long>(memory.arena_bytes),
              static_cast<unsigned long long>(memory.parameter_bytes),
              static_cast<unsigned long long>(memory.copied_bytes),
              static_cast<unsigned long long>(memory.persistent_bytes),
              static_cast<unsigned long long>(memory.scratch_bytes));
  const char *separator = "";
  for (const OutputTensor &output : session.outputs().front()) {
    std::string shape;
    for (int64_t extent : output.extents)
      shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
    std::printf("%s{\"name\": %s, \"type\": \"%s\", \"shape\": [%s]}", separator,
                jsonString(output.name).c_str(), shardrt_type_name(output.type), shape.c_str());
    separator = ", ";
  }
  std::printf("]}\n");
}

void printProfile(const Session &session, const Options &options) {
  const Profile &tables = session.profile();
  double steps = stepsRecorded(session, options);
  double total = tables.computeUs + tables.waitUs;
  std::printf("\nper step and rank: %.4f ms computing, %.4f ms waiting for communication "
              "(%.4f ms in collectives)\n",
              tables.computeUs / 1e3 / steps, tables.waitUs / 1e3 / steps,
              tables.commUs / 1e3 / steps);
  printTable("module", tables.modules, steps, total, false);
  printTable("op", tables.ops, steps, total, false);
  printTable("collective", tables.collectives, steps, tables.commUs, true);
}

} // namespace shardc::run
