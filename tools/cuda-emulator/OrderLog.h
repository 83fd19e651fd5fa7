// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which waits of streams and records of events a program needs. The log has what was enqueued as
// points, each after others. When the program ends, each wait and each record is left out of it in
// turn: if two operations that touch a byte in common, one of which writes it, are not ordered
// then, the happens-before checker reports the program that lacks it, in whatever order it runs.
//
// A record that is left out leaves the event where it was recorded before. Those that only the host
// waits for are not tried: what the host itself reads and writes is not known. Graphs are logged
// once, and their points are added for each launch: what is left out is missing in all of them.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_ORDERLOG_H
#define SHARDC_TOOLS_CUDA_EMULATOR_ORDERLOG_H

#include "tools/cuda-emulator/Clocks.h"

#include <string>
#include <vector>

namespace shardc::emulator {

using OrderPoint = uint32_t;
constexpr uint32_t noPoint = ~0u;

struct OrderEdges {
  std::vector<OrderPoint> before;
  uint32_t label = noPoint;     ///< of a wait or record
  OrderPoint marked = noPoint;  ///< comes before, if the label's is not left out
  OrderPoint instead = noPoint; ///< comes before, if it is
};

/// A capture: points are numbered within it.
struct OrderGraph {
  std::vector<OrderEdges> points;
  OrderPoint end = noPoint;          ///< of the stream that began the capture
  std::vector<OrderPoint> otherEnds; ///< of streams that joined it
};

struct OrderMutant {
  std::string kind;   ///< "wait" or "record"
  std::string stream; ///< that waits, or on which the event is recorded
  std::string place;
  std::string report; ///< empty: nothing is found
  /// It orders operations that touch bytes in common, and so does a later one of the same streams,
  /// before the first of them that needs it.
  bool isImplied;
};

class OrderLog {
public:
  static OrderLog &instance();
  const bool enabled;

  /// Points outside of captures (`graph` null) or in one. `noPoint` among arguments stands for
  /// nothing.
  OrderPoint add(OrderGraph *graph, std::vector<OrderPoint> before);
  /// `joins`: the stream becomes a part of the capture.
  OrderPoint wait(OrderGraph *graph, uint32_t lane, OrderPoint stream, OrderPoint event,
                  bool joins = false);
  OrderPoint record(OrderGraph *graph, uint32_t lane, OrderPoint stream, OrderPoint previous);
  /// The thread has asked whether the point is done, and it is. Of what it has asked for, only the
  /// last counts when it enqueues something: a loop that waits for one event may ask for others
  /// meanwhile, and how many of them were done is a matter of time.
  void ask(OrderPoint point);
  /// For what the thread enqueues now.
  OrderPoint takeAsked();
  void endCapture(const OrderGraph &graph) { captures.push_back(graph); }
  /// The points of a launch, each after all of `before`; they are numbered from the result on.
  OrderPoint launch(const OrderGraph &graph, const std::vector<OrderPoint> &before);
  void setEffects(OrderPoint point, const std::string &name, int device, const Effects &effects);

  /// Memory of the device is released, whose own operations have ended. What comes later has other
  /// memory.
  void release(OrderPoint point, const std::string &name, int device, const ByteInterval &bytes);

  std::vector<OrderMutant> findMutants();

private:
  struct LoggedOperation {
    OrderPoint point;
    std::string name;
    int device;
    Effects effects;
    bool isRelease = false;
  };
  struct Label {
    const char *kind;
    uint32_t lane, from; ///< the stream; of a wait: and that on which the event was recorded
    bool used = false;   ///< a stream waits for what was recorded
    bool joins = false;  ///< the wait makes a stream part of a capture
  };

  OrderLog();
  /// Whether two operations must be ordered, if they are, and the first comes first.
  static bool conflict(const LoggedOperation &first, const LoggedOperation &second);
  std::vector<OrderEdges> &pointsOf(OrderGraph *graph) { return graph ? graph->points : points; }
  OrderPoint push(OrderGraph *graph, OrderEdges edges);
  std::string placeOf(uint32_t label) const;

  std::vector<OrderEdges> points;
  std::vector<LoggedOperation> operations;
  std::vector<Label> labels;
  std::vector<OrderGraph> captures;
};

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_ORDERLOG_H
