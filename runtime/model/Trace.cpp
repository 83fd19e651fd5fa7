// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/model/Trace.h"

#include "dialects/interfaces/JsonText.h"
#include "runtime/support/Failure.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <unistd.h>

namespace shardc::rt {

namespace {

constexpr const char *streamNames[] = {"compute", "communication", "waiting"};

std::string eventText(const shardrt_event &event, double origin) {
  char numbers[160];
  std::snprintf(numbers, sizeof numbers,
                ",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f", int(event.rank),
                int(event.stream), event.start_us - origin, event.duration_us);
  std::string text = "{\"name\":" + jsonString(event.name) + ",\"cat\":\"" +
                     streamNames[event.stream] + "\"" + numbers +
                     ",\"args\":{\"location\":" + jsonString(event.location);
  if (event.stream == SHARDRT_STREAM_COMM)
    text += ",\"bytes\":" + std::to_string(event.bytes);
  return text + "}}";
}

} // namespace

void writeTrace(std::span<const EventLog *const> ranks, const std::string &path) {
  std::string temporary = path + ".tmp" + std::to_string(getpid());
  auto fail = [&](const char *what) {
    std::string reason = std::strerror(errno);
    std::remove(temporary.c_str());
    throw Failure(SHARDRT_BAD_FILE, path + ": cannot " + what + ": " + reason);
  };
  std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(temporary.c_str(), "w"), std::fclose);
  if (!file)
    fail("create the trace");
  std::vector<std::vector<shardrt_event>> events;
  double origin = std::numeric_limits<double>::infinity();
  for (const EventLog *log : ranks) {
    events.push_back(log->sorted());
    if (!events.back().empty())
      origin = std::min(origin, events.back().front().start_us);
  }
  bool good = std::fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", file.get()) >= 0;
  const char *separator = "\n";
  for (size_t r = 0; r < ranks.size(); ++r) {
    std::string pid = std::to_string(ranks[r]->rank);
    std::string meta = "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":" + pid +
                       ",\"args\":{\"name\":\"rank " + pid + "\"}}";
    for (size_t s = 0; s < std::size(streamNames); ++s)
      meta += ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":" + pid +
              ",\"tid\":" + std::to_string(s) + ",\"args\":{\"name\":\"" + streamNames[s] + "\"}}";
    good &= std::fprintf(file.get(), "%s%s", separator, meta.c_str()) >= 0;
    separator = ",\n";
    for (const shardrt_event &event : events[r])
      good &= std::fprintf(file.get(), ",\n%s", eventText(event, origin).c_str()) >= 0;
  }
  good &= std::fputs("\n]}\n", file.get()) >= 0;
  good &= std::fclose(file.release()) == 0;
  if (!good)
    fail("write the trace");
  if (std::rename(temporary.c_str(), path.c_str()) != 0)
    fail("rename the trace");
}

} // namespace shardc::rt
