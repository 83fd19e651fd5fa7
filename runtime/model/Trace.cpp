// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/model/Trace.h"

#include "runtime/support/Failure.h"
#include "support/JsonText.h"

#include <algorithm>
#include <array>
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

/// The lanes of one rank. A stream has one of what was measured and one of what was predicted, and
/// more of them where spans overlap: collectives of several groups are in flight at the same time,
/// and viewers want the spans of a lane one after the other.
class Lanes {
public:
  /// The lane of a span; those of a stream come in order of begin.
  int of(int stream, bool predicted, double begin, double end) {
    std::vector<double> &rows = ends[size_t(kindOf(stream, predicted))];
    size_t row = 0;
    // Times are sums of roundings to a thousandth of a microsecond.
    while (row < rows.size() && rows[row] > begin + 1e-3)
      ++row;
    rows.resize(std::max(rows.size(), row + 1));
    rows[row] = end;
    return idOf(kindOf(stream, predicted), row);
  }

  /// Predicted spans of the next run come: they are drawn from its begin, in the same lanes, though
  /// those of the last run may reach beyond it.
  void beginRun() {
    for (int stream = 0; stream < numStreams; ++stream)
      std::ranges::fill(ends[size_t(kindOf(stream, true))],
                        -std::numeric_limits<double>::infinity());
  }

  /// Names the rank and its lanes, a predicted one below each measured one.
  std::string names(int rank, bool predicted) const {
    std::string pid = std::to_string(rank);
    std::string text = "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":" + pid +
                       ",\"args\":{\"name\":\"rank " + pid + "\"}}";
    int index = 0;
    for (int stream = 0; stream < numStreams; ++stream)
      for (bool expected : {false, true})
        for (size_t row = 0; row < rowsOf(stream, expected, predicted); ++row) {
          std::string begin = ",\n{\"ph\":\"M\",\"pid\":" + pid +
                              ",\"tid\":" + std::to_string(idOf(kindOf(stream, expected), row)) +
                              ",\"name\":\"thread_";
          text += begin + "name\",\"args\":{\"name\":\"" + (expected ? "predicted " : "") +
                  streamNames[stream] + (row ? " " + std::to_string(row + 1) : "") + "\"}}" +
                  begin + "sort_index\",\"args\":{\"sort_index\":" + std::to_string(index++) + "}}";
        }
    return text;
  }

private:
  static int kindOf(int stream, bool predicted) { return stream + (predicted ? numStreams : 0); }
  static int idOf(int kind, size_t row) { return kind + 2 * numStreams * int(row); }
  size_t rowsOf(int stream, bool expected, bool predicted) const {
    size_t used = ends[size_t(kindOf(stream, expected))].size();
    return expected && !predicted ? 0 : std::max<size_t>(used, 1);
  }

  std::array<std::vector<double>, 2 * numStreams> ends; ///< by kind and row: of its last span
};

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
  Lanes lanes;
  std::string spans;
  for (const shardrt_event &event : events) {
    bool moves = event.stream == SHARDRT_STREAM_COMM;
    double begin = event.start_us - origin;
    int lane = lanes.of(event.stream, false, begin, begin + event.duration_us);
    spans += ",\n" + spanText(event.name, streamNames[event.stream], log.rank, lane, begin,
                              event.duration_us, event.location,
                              moves ? ",\"bytes\":" + std::to_string(event.bytes) : "");
  }
  bool predicted = false;
  for (const EventLog::Run &run : log.calls()) {
    std::vector<shardrt_span> ordered(run.entry->predicted,
                                      run.entry->predicted + run.entry->n_predicted);
    lanes.beginRun();
    std::ranges::stable_sort(ordered, {}, &shardrt_span::start_us);
    for (const shardrt_span &span : ordered) {
      double begin = run.beginUs - origin + span.start_us;
      int lane = lanes.of(span.stream, true, begin, begin + span.duration_us);
      spans += ",\n" + spanText(span.name, "predicted", log.rank, lane, begin, span.duration_us,
                                span.location, "");
      predicted = true;
    }
  }
  text += (text.empty() ? "\n" : ",\n") + lanes.names(log.rank, predicted) + spans;
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
