// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/model/Trace.h"

#include "runtime/support/Failure.h"
#include "support/JsonText.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
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

/// When a rank's first event began; infinite if it has none.
double firstUs(const EventLog &log, const std::vector<shardrt_event> &events) {
  double first = std::numeric_limits<double>::infinity();
  if (!events.empty())
    first = events.front().start_us;
  if (!log.calls().empty())
    first = std::min(first, log.calls().front().beginUs);
  return first;
}

/// Everything of one rank, with times from `origin`.
void appendRank(std::string &text, const EventLog &log, const std::vector<shardrt_event> &events,
                double origin) {
  bool predicted = std::ranges::any_of(
      log.calls(), [](const EventLog::Run &run) { return run.entry->n_predicted != 0; });
  text += (text.empty() ? "\n" : ",\n") + laneNames(log.rank, predicted);
  for (const shardrt_event &event : events)
    text += ",\n" + eventText(event, origin);
  for (const EventLog::Run &run : log.calls())
    for (const shardrt_span &span : std::span(run.entry->predicted, run.entry->n_predicted))
      text += ",\n" + predictedText(span, log.rank, run.beginUs - origin);
}

/// What the events' clock is behind that of the host. Whole microseconds, because those since the
/// epoch leave a double no place for fractions.
int64_t hostClockUs() {
  auto behind =
      std::chrono::system_clock::now().time_since_epoch() - Clock::now().time_since_epoch();
  return std::chrono::floor<std::chrono::microseconds>(behind).count();
}

} // namespace

void writeTraceText(const std::string &entries, const std::string &path) {
  std::string temporary = path + ".tmp" + std::to_string(getpid());
  auto fail = [&](const char *what) {
    std::string reason = std::strerror(errno);
    std::remove(temporary.c_str());
    throw Failure(SHARDRT_BAD_FILE, path + ": cannot " + what + ": " + reason);
  };
  std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(temporary.c_str(), "w"), std::fclose);
  if (!file)
    fail("create the trace");
  bool good = std::fprintf(file.get(), "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[%s\n]}\n",
                           entries.c_str()) >= 0;
  good &= std::fclose(file.release()) == 0;
  if (!good)
    fail("write the trace");
  if (std::rename(temporary.c_str(), path.c_str()) != 0)
    fail("rename the trace");
}

void writeTrace(std::span<const EventLog *const> ranks, const std::string &path) {
  std::vector<std::vector<shardrt_event>> events;
  double origin = std::numeric_limits<double>::infinity();
  for (const EventLog *log : ranks) {
    events.push_back(log->sorted());
    origin = std::min(origin, firstUs(*log, events.back()));
  }
  std::string text;
  for (size_t r = 0; r < ranks.size(); ++r)
    appendRank(text, *ranks[r], events[r], origin);
  writeTraceText(text, path);
}

std::string gatherTrace(const EventLog &mine, Communicator &communicator, double timeout) {
  // Every rank hears what all say: a little at a time, the less of each the more there are.
  constexpr size_t ofAllAtOnce = size_t(64) << 20;
  const size_t atOnce = std::clamp<size_t>(ofAllAtOnce / communicator.worldSize(), 1, 1 << 20);
  constexpr Topic topic{"the trace of all ranks"};
  auto exchange = [&](std::string_view bytes) {
    return communicator.exchange(topic, bytes, deadlineAfter(timeout));
  };
  auto exchangeValue = [&](auto value) {
    std::vector<decltype(value)> values;
    for (const std::string &text :
         exchange({reinterpret_cast<const char *>(&value), sizeof value})) {
      decltype(value) one{};
      if (text.size() != sizeof one)
        throw Failure(SHARDRT_MISMATCH, "the trace of all ranks: a rank said something else");
      std::memcpy(&one, text.data(), sizeof one);
      values.push_back(one);
    }
    return values;
  };
  std::vector<shardrt_event> events = mine.sorted();
  int64_t clock = hostClockUs(), mineFirst = std::numeric_limits<int64_t>::max();
  if (double first = firstUs(mine, events); std::isfinite(first))
    mineFirst = int64_t(std::floor(first)) + clock;
  int64_t origin = std::ranges::min(exchangeValue(mineFirst));
  std::string text;
  appendRank(text, mine, events, double(origin - clock));
  uint64_t longest = std::ranges::max(exchangeValue(uint64_t(text.size())));
  std::vector<std::string> all(communicator.rank() == 0 ? communicator.worldSize() : 0);
  for (size_t at = 0; at < longest; at += atOnce) {
    std::string_view rest = text;
    std::vector<std::string> pieces = exchange(rest.substr(std::min(at, rest.size()), atOnce));
    for (size_t rank = 0; rank < all.size(); ++rank)
      all[rank] += pieces[rank];
  }
  std::string merged;
  for (const std::string &one : all)
    merged += (merged.empty() ? "" : ",") + one;
  return merged;
}

} // namespace shardc::rt
