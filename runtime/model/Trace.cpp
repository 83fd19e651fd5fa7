// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/model/Trace.h"

#include "runtime/support/Failure.h"
#include "support/JsonText.h"

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
constexpr int numStreams = std::size(streamNames);

/// One entry of the trace; `tid` is the lane within the rank.
std::string spanText(const char *name, const char *category, int rank, int tid, double start,
                     double duration, const char *location, const std::string &arguments) {
  char numbers[160];
  std::snprintf(numbers, sizeof numbers,
                ",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f", rank, tid, start,
                duration);
  return "{\"name\":" + jsonString(name) + ",\"cat\":\"" + category + "\"" + numbers +
         ",\"args\":{\"location\":" + jsonString(location) + arguments + "}}";
}

std::string eventText(const shardrt_event &event, double origin) {
  bool moves = event.stream == SHARDRT_STREAM_COMM;
  return spanText(event.name, streamNames[event.stream], int(event.rank), int(event.stream),
                  event.start_us - origin, event.duration_us, event.location,
                  moves ? ",\"bytes\":" + std::to_string(event.bytes) : "");
}

std::string predictedText(const shardrt_span &span, int rank, double begin) {
  return spanText(span.name, "predicted", rank, numStreams + int(span.stream),
                  begin + span.start_us, span.duration_us, span.location, "");
}

/// Names the lanes of a rank, a predicted one below each measured one.
std::string laneNames(int rank, bool predicted) {
  std::string pid = std::to_string(rank);
  std::string text = "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":" + pid +
                     ",\"args\":{\"name\":\"rank " + pid + "\"}}";
  for (int lane = 0; lane < (predicted ? 2 : 1) * numStreams; ++lane) {
    bool expected = lane >= numStreams;
    int stream = lane % numStreams;
    std::string begin = ",\n{\"ph\":\"M\",\"pid\":" + pid + ",\"tid\":" + std::to_string(lane) +
                        ",\"name\":\"thread_";
    text += begin + "name\",\"args\":{\"name\":\"" + (expected ? "predicted " : "") +
            streamNames[stream] + "\"}}" + begin +
            "sort_index\",\"args\":{\"sort_index\":" + std::to_string(2 * stream + expected) + "}}";
  }
  return text;
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
    if (!log->calls().empty())
      origin = std::min(origin, log->calls().front().beginUs);
  }
  bool good = std::fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", file.get()) >= 0;
  const char *separator = "\n";
  for (size_t r = 0; r < ranks.size(); ++r) {
    const EventLog &log = *ranks[r];
    bool predicted = std::ranges::any_of(
        log.calls(), [](const EventLog::Run &run) { return run.entry->n_predicted != 0; });
    good &=
        std::fprintf(file.get(), "%s%s", separator, laneNames(log.rank, predicted).c_str()) >= 0;
    separator = ",\n";
    for (const shardrt_event &event : events[r])
      good &= std::fprintf(file.get(), ",\n%s", eventText(event, origin).c_str()) >= 0;
    for (const EventLog::Run &run : log.calls())
      for (const shardrt_span &span : std::span(run.entry->predicted, run.entry->n_predicted))
        good &= std::fprintf(file.get(), ",\n%s",
                             predictedText(span, log.rank, run.beginUs - origin).c_str()) >= 0;
  }
  good &= std::fputs("\n]}\n", file.get()) >= 0;
  good &= std::fclose(file.release()) == 0;
  if (!good)
    fail("write the trace");
  if (std::rename(temporary.c_str(), path.c_str()) != 0)
    fail("rename the trace");
}

} // namespace shardc::rt
