// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recurrent layers and their cells: the products with inputs are one of all steps, those with
// states one a step.
//   lstm: i, f, g, o = gates;  c' = sigmoid(f) c + sigmoid(i) tanh(g);  h' = sigmoid(o) tanh(c')
//   gru:  r, z, n: n = tanh(x_n + sigmoid(r) h_n);  h' = n + sigmoid(z) (h - n)
//   rnn:  h' = tanh or relu of the gate
// as torch.nn.LSTM, GRU and RNN document them.
#include "importers/torch_export/import/Formula.h"

#include "dialects/aten/Random.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// The weights of one layer in one direction. `project` makes the output of a hidden state.
struct Weights {
  Expr ofInput, ofState, inputBias, stateBias, project;
};

/// `cell` is null but for lstm.
struct State {
  Expr hidden, cell;
};

class Recurrence {
public:
  Recurrence(Formula &f, StringRef kind) : f(f), kind(kind) {}

  bool hasCell() const { return kind == "lstm"; }
  Expr linear(Expr x, Expr weight, Expr bias) {
    SmallVector<aten::NamedOperand> operands = {{"input", {x.value}}, {"weight", {weight.value}}};
    if (bias)
      operands.push_back({"bias", {bias.value}});
    return f.op("aten.linear", operands);
  }
  /// One step. `gates` are the products with its input: [batch, gates x hidden].
  State step(Expr gates, State state, const Weights &weights);

private:
  /// Equal parts of the last dim.
  SmallVector<Expr> parts(Expr x, int64_t count);

  Formula &f;
  StringRef kind;
};

SmallVector<Expr> Recurrence::parts(Expr x, int64_t count) {
  int64_t size = aten::shapeOf(x.value).back() / count;
  OpBuilder &builder = f.call.builder;
  SmallVector<Expr> found;
  for (int64_t i = 0; i < count; ++i)
    found.push_back(f.slice(x, x.rank() - 1, builder.getIndexAttr(i * size),
                            builder.getIndexAttr((i + 1) * size)));
  return found;
}

State Recurrence::step(Expr gates, State state, const Weights &weights) {
  Expr recurrent = linear(state.hidden, weights.ofState, weights.stateBias);
  if (kind == "lstm") {
    SmallVector<Expr> gate = parts(gates + recurrent, 4);
    Expr cell = sigmoid(gate[1]) * state.cell + sigmoid(gate[0]) * tanh(gate[2]);
    Expr hidden = sigmoid(gate[3]) * tanh(cell);
    return {weights.project ? linear(hidden, weights.project, {}) : hidden, cell};
  }
  if (kind == "gru") {
    SmallVector<Expr> x = parts(gates, 3), h = parts(recurrent, 3);
    Expr candidate = tanh(x[2] + sigmoid(x[0] + h[0]) * h[2]);
    return {candidate + sigmoid(x[1] + h[1]) * (state.hidden - candidate), {}};
  }
  Expr gate = gates + recurrent;
  return {kind == "rnn_relu" ? f.op("aten.relu", {{"self", {gate.value}}}) : tanh(gate), {}};
}

/// All layers over all steps.
class Layers {
public:
  Layers(Call &call, StringRef kind) : call(call), f(call), recurrence(f, kind) {}

  FailureOr<Results> build();

private:
  LogicalResult read();
  LogicalResult readWeights();
  /// What a layer makes of [steps, batch, features] in one direction, in the order of the steps.
  SmallVector<Expr> run(Expr input, unsigned index);
  Expr stack(ArrayRef<Expr> parts);
  Expr row(Expr x, int64_t i) {
    return f.squeeze(f.slice(x, 0, call.builder.getIndexAttr(i), call.builder.getIndexAttr(i + 1)),
                     0);
  }

  Call &call;
  Formula f;
  Recurrence recurrence;
  Expr input, hidden, cell; // [steps, batch, features], [layers x directions, batch, features]
  SmallVector<Weights> weights;
  SmallVector<State> last; // of each layer and direction
  int64_t steps = 0, directions = 1;
  double dropout = 0; // between layers
  bool isBatchFirst = false;
};

LogicalResult Layers::readWeights() {
  SmallVector<Expr> given = f.tensors("params");
  bool hasBiases = f.flag("has_biases");
  if (f.failed())
    return failure();
  bool isProjected = recurrence.hasCell() &&
                     aten::shapeOf(hidden.value).back() != aten::shapeOf(cell.value).back();
  size_t each = 2 + (hasBiases ? 2 : 0) + (isProjected ? 1 : 0);
  auto count = static_cast<size_t>(f.integer("num_layers") * directions);
  if (given.size() != each * count)
    return call.error() << "has " << given.size() << " weights, and " << count << " layers of "
                        << each << " each";
  for (size_t i = 0; i < count; ++i) {
    ArrayRef<Expr> own = ArrayRef(given).slice(i * each, each);
    Weights of{own[0], own[1], {}, {}, isProjected ? own.back() : Expr()};
    if (hasBiases)
      std::tie(of.inputBias, of.stateBias) = std::pair(own[2], own[3]);
    weights.push_back(of);
  }
  return success();
}

LogicalResult Layers::read() {
  input = f.tensor("input");
  if (recurrence.hasCell()) {
    SmallVector<Expr> states = f.tensors("hx");
    if (states.size() != 2)
      return call.error() << "has " << states.size() << " initial states, not two";
    std::tie(hidden, cell) = std::pair(states[0], states[1]);
  } else {
    hidden = f.tensor("hx");
  }
  isBatchFirst = f.flag("batch_first");
  directions = f.flag("bidirectional") ? 2 : 1;
  dropout = f.flag("train") ? f.real("dropout") : 0;
  if (f.failed() || failed(readWeights()))
    return failure();
  if (isBatchFirst)
    input = transpose(input, 0, 1);
  steps = aten::shapeOf(input.value).front();
  if (ShapedType::isDynamic(steps))
    return call.error() << "needs a known number of steps: dim " << (isBatchFirst ? 1 : 0)
                        << " of its input is dynamic";
  if (steps == 0)
    return call.error() << "needs at least one step";
  return success();
}

Expr Layers::stack(ArrayRef<Expr> parts) {
  SmallVector<Value> values;
  for (Expr part : parts)
    values.push_back(unsqueeze(part, 0).value);
  return f.of(f.emit.cat(values, 0));
}

SmallVector<Expr> Layers::run(Expr x, unsigned index) {
  const Weights &of = weights[index];
  bool isReverse = index % directions == 1;
  State state{row(hidden, index), cell ? row(cell, index) : Expr()};
  Expr gates = recurrence.linear(x, of.ofInput, of.inputBias);
  SmallVector<Expr> outputs(steps);
  for (int64_t step : llvm::seq(steps)) {
    int64_t at = isReverse ? steps - 1 - step : step;
    state = recurrence.step(row(gates, at), state, of);
    outputs[at] = state.hidden;
  }
  last.push_back(state);
  return outputs;
}

FailureOr<Results> Layers::build() {
  if (failed(read()))
    return failure();
  Expr x = input;
  for (unsigned index = 0; index < weights.size(); index += directions) {
    if (index > 0 && dropout > 0) {
      FailureOr<Value> numbers = call.draw("uniform", call.builder.getF32Type(), f.sizes(x));
      if (failed(numbers))
        return failure();
      Expr kept = lt(f.of(*numbers), 1 - dropout);
      x = f.of(
          aten::DropoutOp::create(call.builder, call.loc, x.value, kept.value, APFloat(dropout)));
    }
    SmallVector<Value> made;
    for (unsigned direction : llvm::seq<unsigned>(directions))
      made.push_back(stack(run(x, index + direction)).value);
    x = made.size() == 1 ? f.of(made[0]) : f.of(f.emit.cat(made, 2));
  }
  if (f.failed())
    return failure();
  Results results{(isBatchFirst ? transpose(x, 0, 1) : x).value};
  for (Expr State::*of : {&State::hidden, &State::cell}) {
    SmallVector<Expr> states;
    for (const State &state : last)
      if (state.*of)
        states.push_back(state.*of);
    if (!states.empty())
      results.push_back(stack(states).value);
  }
  return results;
}

FailureOr<Results> buildCell(Call &call, StringRef kind) {
  Formula f(call);
  Recurrence recurrence(f, kind);
  Expr input = f.tensor("input");
  State state;
  if (recurrence.hasCell()) {
    SmallVector<Expr> states = f.tensors("hx");
    if (states.size() != 2)
      return call.error() << "has " << states.size() << " states, not two";
    state = {states[0], states[1]};
  } else {
    state.hidden = f.tensor("hx");
  }
  Weights of{f.tensor("w_ih"), f.tensor("w_hh"), f.tensor("b_ih"), f.tensor("b_hh"), {}};
  if (f.failed())
    return failure();
  State next = recurrence.step(recurrence.linear(input, of.ofInput, of.inputBias), state, of);
  if (f.failed())
    return failure();
  Results results{next.hidden.value};
  if (next.cell)
    results.push_back(next.cell.value);
  return results;
}

} // namespace

// "lstm.input" -> lstm, "gru_cell.default" -> gru
FailureOr<Results> buildRecurrent(Call &call) {
  return Layers(call, StringRef(call.schema.overload).split('.').first).build();
}

FailureOr<Results> buildRecurrentCell(Call &call) {
  StringRef packet = StringRef(call.schema.overload).split('.').first;
  packet.consume_back("_cell");
  return buildCell(call, packet);
}

} // namespace shardc::torch_export
