// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/LtProducts.h"

#include "runtime/plugins/cuda/Operations.h"
#include "runtime/support/Types.h"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

namespace shardc::plugin::cuda {

namespace {

constexpr int mostCandidates = 8;
constexpr int timedRuns = 3;
constexpr unsigned bestAlignment = 256;

int ltType(shardrt_type type) {
  switch (type) {
  case SHARDRT_F32:
    return ltF32;
  case SHARDRT_F64:
    return ltF64;
  case SHARDRT_F16:
    return ltF16;
  default:
    return ltBF16;
  }
}

bool isSet(const char *variable, bool otherwise) {
  const char *text = std::getenv(variable);
  return text && *text ? std::strcmp(text, "0") != 0 : otherwise;
}

unsigned alignmentOf(const void *data) {
  auto address = reinterpret_cast<uintptr_t>(data);
  return address == 0 ? bestAlignment
                      : unsigned(std::min<uintptr_t>(address & (~address + 1), bestAlignment));
}

/// Numbers of the type that scales.
struct Scale {
  Scale(shardrt_type type, double value) : wide(value), narrow(float(value)) {
    isWide = type == SHARDRT_F64;
  }
  const void *get() const {
    return isWide ? static_cast<const void *>(&wide) : static_cast<const void *>(&narrow);
  }
  double wide;
  float narrow;
  bool isWide;
};

std::string subjectOf(const Device &device, const LtLibrary &lt) {
  return std::string(device.facts().name) + ", sm_" + std::to_string(device.chip()) +
         ", cuBLASLt " + std::to_string(lt.version);
}

} // namespace

const char *ltTypeName(shardrt_type type) {
  switch (type) {
  case SHARDRT_F32:
    return "f32";
  case SHARDRT_F64:
    return "f64";
  case SHARDRT_F16:
    return "f16";
  case SHARDRT_BF16:
    return "bf16";
  default:
    return "another type";
  }
}

struct LtProducts::Plan {
  explicit Plan(const LtLibrary &lt) : lt(lt) {}
  ~Plan() {
    for (LtLayoutHandle layout : {a, b, c})
      if (layout)
        lt.layoutDestroy(layout);
    if (product)
      lt.productDestroy(product);
  }
  Plan(const Plan &) = delete;

  LtLayoutHandle layout(const LtProduct &p, int64_t rows, int64_t columns, int64_t ld,
                        int64_t stride) const {
    LtLayoutHandle made = nullptr;
    lt.check("cublasLtMatrixLayoutCreate", lt.layoutCreate(&made, ltType(p.type), uint64_t(rows),
                                                           uint64_t(columns), std::max(ld, rows)));
    auto count = int32_t(p.batch);
    if (count > 1) {
      lt.check("cublasLtMatrixLayoutSetAttribute",
               lt.layoutSet(made, ltLayoutBatch, &count, sizeof count));
      lt.check("cublasLtMatrixLayoutSetAttribute",
               lt.layoutSet(made, ltLayoutStride, &stride, sizeof stride));
    }
    return made;
  }

  const LtLibrary &lt;
  std::string name;
  LtProductHandle product = nullptr;
  LtLayoutHandle a = nullptr, b = nullptr, c = nullptr;
  std::optional<LtChoice> choice;
  bool tuned = false, impossible = false;
};

LtProducts::LtProducts(Device &device)
    : device(device), lt(device), tunes(isSet("SHARDRT_GEMM_TUNE", device.isAlone())),
      cache(subjectOf(device, lt),
            tunes ? LtCache::fileFor(subjectOf(device, lt), device.isEmulated()) : "",
            [&device](const std::string &text) { device.warn(text); }),
      usesTf32(isSet("SHARDRT_TF32", false)), mostWorkspace(size_t(device.isEmulated()   ? 1
                                                                   : device.chip() >= 90 ? 32
                                                                                         : 8)
                                                            << 20) {
  lt.check("cublasLtCreate", lt.create(&handle));
}

LtProducts::~LtProducts() {
  plans.clear();
  for (auto &[type, memory] : onesOf)
    device.driver().release(memory.first);
  for (Pointer old : outgrown)
    device.driver().release(old);
  for (EventHandle event : events)
    if (event)
      device.driver().eventDestroy(event);
  lt.destroy(handle);
}

LtProducts::Plan &LtProducts::planOf(const LtProduct &p) {
  char name[400];
  std::snprintf(name, sizeof name,
                "%s%s %" PRId64 "x%" PRId64 "x%" PRId64 " by %" PRId64 " a%d:%" PRId64 ":%" PRId64
                ":%u b%d:%" PRId64 ":%" PRId64 ":%u c:%" PRId64 ":%" PRId64 ":%u%s%s",
                ltTypeName(p.type), usesTf32 && p.type == SHARDRT_F32 ? " tf32" : "", p.m, p.n, p.k,
                p.batch, int(p.a.transposed), p.a.ld, p.a.stride, alignmentOf(p.a.data),
                int(p.b.transposed), p.b.ld, p.b.stride, alignmentOf(p.b.data), p.ldc, p.strideC,
                alignmentOf(p.c), p.bias ? " bias" : "", p.beta == 0 ? "" : " beta");
  std::unique_ptr<Plan> &known = plans[name];
  if (known)
    return *known;
  auto plan = std::make_unique<Plan>(lt);
  plan->name = name;
  int compute = p.type == SHARDRT_F64               ? ltCompute64
                : p.type == SHARDRT_F32 && usesTf32 ? ltComputeTf32
                                                    : ltCompute32;
  lt.check("cublasLtMatmulDescCreate",
           lt.productCreate(&plan->product, compute, p.type == SHARDRT_F64 ? ltF64 : ltF32));
  auto set = [&](int attribute, const auto &value) {
    lt.check("cublasLtMatmulDescSetAttribute",
             lt.productSet(plan->product, attribute, &value, sizeof value));
  };
  set(ltProductTransposeA, int32_t(p.a.transposed ? ltTransposed : ltPlain));
  set(ltProductTransposeB, int32_t(p.b.transposed ? ltTransposed : ltPlain));
  if (p.bias) {
    set(ltProductEpilogue, uint32_t(ltBias));
    set(ltProductBias, p.bias);
  }
  plan->a = plan->layout(p, p.a.rows, p.a.columns, p.a.ld, p.a.stride);
  plan->b = plan->layout(p, p.b.rows, p.b.columns, p.b.ld, p.b.stride);
  plan->c = plan->layout(p, p.m, p.n, p.ldc, p.strideC);
  return *(known = std::move(plan));
}

LtStatus LtProducts::run(Plan &plan, const LtProduct &p, const LtChoice &choice, void *into,
                         StreamHandle stream) {
  if (p.bias)
    lt.check("cublasLtMatmulDescSetAttribute",
             lt.productSet(plan.product, ltProductBias, &p.bias, sizeof p.bias));
  LtAlgorithm algorithm;
  std::memcpy(algorithm.data, choice.algorithm, sizeof algorithm.data);
  void *workspace = nullptr;
  if (choice.workspace > 0)
    workspace = reserve(stream, Purpose::Algorithm, size_t(choice.workspace));
  const Scale alpha(p.type, p.alpha), beta(p.type, p.beta);
  return lt.multiply(handle, plan.product, alpha.get(), p.a.data, plan.a, p.b.data, plan.b,
                     beta.get(), p.c, plan.c, into, plan.c, &algorithm, workspace,
                     size_t(choice.workspace), stream);
}

EventHandle LtProducts::event(size_t which, unsigned flags) {
  if (!events[which])
    device.check(device.driver().eventCreate(&events[which], flags), "making an event");
  return events[which];
}

void LtProducts::keepShort(StreamHandle stream) {
  // Of three times as many at most, none is done: of six pieces of work each, about 300. A queue
  // has about 1000 places, of which the runtime takes less than half.
  constexpr size_t apart = 16;
  if (++small % apart != 0 || isCaptured(device, stream))
    return;
  const bool first = small / apart % 2 != 0;
  EventHandle behind = event(first ? Behind : BehindThat, eventNoTiming);
  device.await(behind, "waiting for small products"); // of those before the last ones
  device.check(device.driver().eventRecord(behind, stream), "recording an event");
}

/// Microseconds of one run; infinite if the algorithm does not run.
double LtProducts::time(Plan &plan, const LtProduct &p, const LtChoice &choice, void *into,
                        StreamHandle stream) {
  const Driver &driver = device.driver();
  EventHandle begin = event(Begin, eventDefault), end = event(End, eventDefault);
  if (run(plan, p, choice, into, stream) != ltSuccess)
    return std::numeric_limits<double>::infinity();
  device.check(driver.eventRecord(begin, stream), "timing a product");
  for (int i = 0; i < timedRuns; ++i)
    if (run(plan, p, choice, into, stream) != ltSuccess)
      return std::numeric_limits<double>::infinity();
  device.check(driver.eventRecord(end, stream), "timing a product");
  // What is on the stream before may wait for other ranks.
  device.await(end, "timing a product");
  float milliseconds = 0;
  device.check(driver.eventElapsed(&milliseconds, begin, end), "timing a product");
  return double(milliseconds) * 1000 / timedRuns;
}

bool LtProducts::choose(Plan &plan, const LtProduct &p, StreamHandle stream) {
  if (plan.impossible || plan.tuned)
    return !plan.impossible;
  if (std::optional<LtChoice> known = cache.find(plan.name)) {
    LtAlgorithm algorithm;
    std::memcpy(algorithm.data, known->algorithm, sizeof algorithm.data);
    LtCandidate checked{};
    if (lt.checkAlgorithm(handle, plan.product, plan.a, plan.b, plan.c, plan.c, &algorithm,
                          &checked) == ltSuccess &&
        checked.workspace <= mostWorkspace) {
      known->workspace = checked.workspace;
      plan.choice = known;
      return plan.tuned = true;
    }
  }
  // What runs is measured once, and never while it is captured.
  bool measures = tunes && !isCaptured(device, stream);
  if (plan.choice && !measures)
    return true;
  LtPreferenceHandle preference = nullptr;
  lt.check("cublasLtMatmulPreferenceCreate", lt.preferenceCreate(&preference));
  std::shared_ptr<void> owner(preference, [this](void *gone) {
    lt.preferenceDestroy(static_cast<LtPreferenceHandle>(gone));
  });
  auto set = [&](int attribute, const auto &value) {
    lt.check("cublasLtMatmulPreferenceSetAttribute",
             lt.preferenceSet(preference, attribute, &value, sizeof value));
  };
  set(ltPreferWorkspace, uint64_t(mostWorkspace));
  set(ltPreferReductions, ltReduceInComputeType);
  const void *operands[] = {p.a.data, p.b.data, p.c, p.c};
  for (int i = 0; i < 4; ++i)
    set(ltPreferAlignmentA + i, uint32_t(alignmentOf(operands[i])));
  LtCandidate candidates[mostCandidates] = {};
  int count = 0;
  LtStatus status = lt.heuristics(handle, plan.product, plan.a, plan.b, plan.c, plan.c, preference,
                                  mostCandidates, candidates, &count);
  if (status != ltNotSupported)
    lt.check("cublasLtMatmulAlgoGetHeuristic", status);
  std::vector<LtChoice> choices;
  for (int i = 0; status == ltSuccess && i < count; ++i)
    if (candidates[i].state == ltSuccess) {
      LtChoice &choice = choices.emplace_back();
      std::memcpy(choice.algorithm, candidates[i].algorithm.data, sizeof choice.algorithm);
      choice.workspace = candidates[i].workspace;
    }
  if (choices.empty()) {
    plan.impossible = true;
    return false;
  }
  if (!plan.choice)
    plan.choice = choices.front();
  if (!measures)
    return true;
  plan.tuned = true;
  if (choices.size() > 1) {
    // Where C is read, runs must not change it: they write elsewhere.
    void *into = p.c;
    if (p.beta != 0) {
      int64_t elements = p.strideC * (p.batch - 1) + p.ldc * p.n;
      into = reserve(stream, Purpose::Measuring, size_t(elements) * size_t(elementBytes(p.type)));
    }
    double best = std::numeric_limits<double>::infinity();
    for (const LtChoice &choice : choices)
      if (double taken = time(plan, p, choice, into, stream); taken < best) {
        best = taken;
        plan.choice = choice;
      }
  }
  cache.add(plan.name, *plan.choice);
  return true;
}

bool LtProducts::multiply(const LtProduct &product, StreamHandle stream) {
  // Some algorithms count batches in 16 bits.
  constexpr int64_t mostBatches = 65535;
  for (int64_t done = 0; done < product.batch; done += mostBatches) {
    LtProduct part = product;
    part.batch = std::min(mostBatches, product.batch - done);
    auto at = [&](const void *data, int64_t stride) {
      return static_cast<const char *>(data) + done * stride * elementBytes(product.type);
    };
    part.a.data = at(product.a.data, product.a.stride);
    part.b.data = at(product.b.data, product.b.stride);
    part.c = const_cast<char *>(at(product.c, product.strideC));
    Plan &plan = planOf(part);
    if (!choose(plan, part, stream))
      return false;
    lt.check("cublasLtMatmul", run(plan, part, *plan.choice, part.c, stream));
  }
  return true;
}

void LtProducts::transpose(shardrt_type type, const LtMatrix &a, void *c, int64_t ldc,
                           int64_t strideC, int64_t batch, StreamHandle stream) {
  LtProduct facts; // of the layouts
  facts.type = type;
  facts.batch = batch;
  Plan plan(lt);
  plan.a = plan.layout(facts, a.rows, a.columns, a.ld, a.stride);
  plan.c = plan.layout(facts, a.columns, a.rows, ldc, strideC);
  LtTransformHandle transform = nullptr;
  lt.check("cublasLtMatrixTransformDescCreate",
           lt.transformCreate(&transform, type == SHARDRT_F64 ? ltF64 : ltF32));
  std::shared_ptr<void> owner(
      transform, [this](void *gone) { lt.transformDestroy(static_cast<LtTransformHandle>(gone)); });
  const int32_t transposed = ltTransposed;
  lt.check("cublasLtMatrixTransformDescSetAttribute",
           lt.transformSet(transform, ltTransformTransposeA, &transposed, sizeof transposed));
  const Scale one(type, 1), zero(type, 0);
  lt.check("cublasLtMatrixTransform",
           lt.transform(handle, transform, one.get(), a.data, plan.a, zero.get(), nullptr, nullptr,
                        c, plan.c, stream));
}

char *LtProducts::reserve(StreamHandle stream, Purpose purpose, size_t bytes) {
  auto memory = memories.try_emplace(std::pair(stream, purpose), device).first;
  return memory->second.reserve(stream, bytes);
}

const void *LtProducts::ones(shardrt_type type, int64_t count, StreamHandle stream) {
  auto &[memory, size] = onesOf[type];
  if (size < count) {
    if (isCaptured(device, stream))
      throw Failure{SHARDRT_INTERNAL, "it needs memory, which the first run outside of a capture "
                                      "would have allocated"};
    if (memory)
      outgrown.push_back(std::exchange(memory, 0));
    const auto wanted = size_t(std::max(count, 2 * size));
    const auto width = size_t(elementBytes(type));
    std::vector<char> values(wanted * width);
    for (size_t i = 0; i < wanted; ++i) {
      const double wide = 1;
      const float narrow = 1;
      const uint16_t half = type == SHARDRT_F16 ? rt::toFloat16(1).bits : rt::toBFloat16(1).bits;
      const void *one = width == 8   ? static_cast<const void *>(&wide)
                        : width == 4 ? static_cast<const void *>(&narrow)
                                     : &half;
      std::memcpy(&values[i * width], one, width);
    }
    device.check(device.driver().allocate(&memory, values.size()), "allocating ones");
    device.check(device.driver().copy(memory, address(values.data()), values.size(), stream),
                 "writing ones");
    EventHandle written = event(Written, eventNoTiming);
    device.check(device.driver().eventRecord(written, stream), "writing ones");
    device.await(written, "writing ones");
    size = int64_t(wanted);
  }
  return reinterpret_cast<const void *>(memory);
}

} // namespace shardc::plugin::cuda
