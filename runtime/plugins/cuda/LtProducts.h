// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products as cuBLASLt has them (column-major), and which of its algorithms runs each.
#ifndef SHARDC_RUNTIME_PLUGINS_CUDA_LTPRODUCTS_H
#define SHARDC_RUNTIME_PLUGINS_CUDA_LTPRODUCTS_H

#include "runtime/plugins/cuda/LtCache.h"
#include "runtime/plugins/cuda/LtLibrary.h"
#include "runtime/plugins/cuda/Scratch.h"

namespace shardc::plugin::cuda {

/// "f32"; for the four types that there are products of.
const char *ltTypeName(shardrt_type type);

struct LtMatrix {
  const void *data = nullptr;
  int64_t rows = 0, columns = 0; ///< as it is stored, column-major
  int64_t ld = 0, stride = 0;    ///< elements; from product to product of a batch
  bool transposed = false;
};

/// C = alpha * op(A) * op(B) + beta * C + bias: m x n, column-major.
struct LtProduct {
  shardrt_type type = SHARDRT_F32;
  int64_t m = 0, n = 0, k = 0, batch = 1;
  LtMatrix a, b;
  void *c = nullptr;
  int64_t ldc = 0, strideC = 0;
  const void *bias = nullptr; ///< m elements, added to each column
  double alpha = 1, beta = 0;
};

class LtProducts {
public:
  explicit LtProducts(Device &device);
  ~LtProducts();
  LtProducts(const LtProducts &) = delete;

  /// False if cuBLASLt has no algorithm for it. Throws Failure.
  bool multiply(const LtProduct &product, StreamHandle stream);
  /// c = a transposed: a is rows x columns, column-major. Exact.
  void transpose(shardrt_type type, const LtMatrix &a, void *c, int64_t ldc, int64_t strideC,
                 int64_t batch, StreamHandle stream);
  /// Memory for one purpose, until it is asked for again on this stream.
  enum class Purpose : uint8_t { Algorithm, Measuring, Copies, Transposed };
  char *reserve(StreamHandle stream, Purpose purpose, size_t bytes);
  /// That many elements of value 1.
  const void *ones(shardrt_type type, int64_t count, StreamHandle stream);
  /// Called for each of many small products: waits where the device's own queue would fill up, in
  /// which the host would be caught.
  void keepShort(StreamHandle stream);

private:
  /// A product with what cuBLASLt needs for it; kept from call to call.
  struct Plan;
  Plan &planOf(const LtProduct &product);
  bool choose(Plan &plan, const LtProduct &product, StreamHandle stream);
  double time(Plan &plan, const LtProduct &product, const LtChoice &choice, void *into,
              StreamHandle stream);
  LtStatus run(Plan &plan, const LtProduct &product, const LtChoice &choice, void *into,
               StreamHandle stream);

  Device &device;
  const LtLibrary lt;
  LtHandle handle = nullptr;
  const bool tunes;
  LtCache cache;
  const bool usesTf32;
  const size_t mostWorkspace;
  std::map<std::string, std::unique_ptr<Plan>> plans;
  std::map<std::pair<StreamHandle, Purpose>, StreamScratch> memories;
  std::map<shardrt_type, std::pair<Pointer, int64_t>> onesOf;
  std::vector<Pointer> outgrown;
  EventHandle event(size_t which, unsigned flags);
  enum : size_t { Begin, End, Written, Behind, BehindThat, EventCount };
  EventHandle events[EventCount] = {};
  size_t small = 0; ///< products that keepShort was called for
};

} // namespace shardc::plugin::cuda

#endif // SHARDC_RUNTIME_PLUGINS_CUDA_LTPRODUCTS_H
