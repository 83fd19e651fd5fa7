// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of emulated cuBLASLt: descriptors, checks of arguments, and algorithms. There are
// two, which differ in the memory that they work in; both compute the same.
#include "tools/cuda-emulator/Streams.h"
#include "tools/cuda-emulator/lt/CublasLt.h"
#include "tools/cuda-emulator/lt/Product.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace shardc::emulator;

// Objects know that they are there: one that was destroyed, or is another kind, is found.
struct cublasLtContext {
  static constexpr uint64_t kind = 0x6c746374;
  uint64_t magic = kind;
};
struct cublasLtMatmulDescEmulated {
  static constexpr uint64_t kind = 0x6c74646d;
  uint64_t magic = kind;
  int compute = 0, scale = 0;
  int32_t transposeA = 0, transposeB = 0;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void *bias = nullptr;
};
struct cublasLtMatrixLayoutEmulated {
  static constexpr uint64_t kind = 0x6c746c79;
  uint64_t magic = kind;
  LtMatrix matrix;
};
struct cublasLtMatmulPreferenceEmulated {
  static constexpr uint64_t kind = 0x6c747072;
  uint64_t magic = kind;
  uint64_t workspace = 0;
  uint32_t reductions = 7;
  uint32_t alignments[4] = {256, 256, 256, 256};
};
struct cublasLtMatrixTransformDescEmulated {
  static constexpr uint64_t kind = 0x6c747472;
  uint64_t magic = kind;
  int scale = 0;
  int32_t transposeA = 0;
};

namespace {

constexpr size_t emulatedLtVersion = 120401;
constexpr uint64_t algorithmMagic = 0x73686172646c7431;
constexpr size_t algorithmWorkspace = 4096;

/// An algorithm as it is kept in its 64 bytes.
struct Algorithm {
  uint64_t magic = algorithmMagic;
  uint64_t number = 0;
  uint32_t alignments[4] = {};
  uint64_t workspace = 0;
  uint64_t unused[3] = {};
};
static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));

template <typename T> bool lives(const T *object) { return object && object->magic == T::kind; }

cublasStatus_t wrong(const char *function, const std::string &why) {
  reportError(0, CUDA_SUCCESS, std::string(function) + ": " + why);
  return CUBLAS_STATUS_INVALID_VALUE;
}

template <typename T> cublasStatus_t create(T **object, T made) {
  if (!object)
    return CUBLAS_STATUS_INVALID_VALUE;
  *object = new T(made);
  return CUBLAS_STATUS_SUCCESS;
}
template <typename T> cublasStatus_t destroy(T *object, const char *function) {
  if (!lives(object))
    return wrong(function, "there is no such object");
  object->magic = 0;
  delete object;
  return CUBLAS_STATUS_SUCCESS;
}
template <typename T>
cublasStatus_t set(T &field, const void *value, size_t bytes, const char *function) {
  if (!value || bytes != sizeof(T))
    return wrong(function, "the attribute has " + std::to_string(sizeof(T)) + " bytes, not " +
                               std::to_string(bytes));
  std::memcpy(&field, value, sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}

/// A library that does as little as it may, so that what stands in for it is tested.
bool isStrict() {
  const char *text = std::getenv("CUDA_EMULATED_LT");
  return text && !std::strcmp(text, "strict");
}

bool isKnown(int type) {
  return type == CUDA_R_32F || type == CUDA_R_64F || type == CUDA_R_16F || type == CUDA_R_16BF;
}

struct Shapes {
  const LtMatrix &a, &b, &c, &d;
};

/// What is wrong with a product; empty: nothing.
std::string problemOf(const cublasLtMatmulDescEmulated &desc, const Shapes &s) {
  const uint64_t m = desc.transposeA ? s.a.columns : s.a.rows;
  const uint64_t k = desc.transposeA ? s.a.rows : s.a.columns;
  const uint64_t inner = desc.transposeB ? s.b.columns : s.b.rows;
  const uint64_t n = desc.transposeB ? s.b.rows : s.b.columns;
  if (k != inner || s.c.rows != m || s.c.columns != n || s.d.rows != m || s.d.columns != n)
    return "the sizes of the matrices do not fit";
  for (const LtMatrix *x : {&s.a, &s.b, &s.c, &s.d}) {
    if (x->type != s.d.type)
      return "types differ";
    if (x->batch != s.d.batch)
      return "the numbers of products differ";
    if (x->rows == 0 || x->columns == 0 || x->batch < 1)
      return "a matrix without elements";
    if (x->ld < int64_t(x->rows))
      return "a leading dimension of " + std::to_string(x->ld) + " for " + std::to_string(x->rows) +
             " rows";
  }
  if (s.d.batch > 1 && s.d.stride < int64_t(s.d.rows))
    return "products of a batch have one place";
  bool wide = s.d.type == CUDA_R_64F;
  if ((desc.compute == CUBLAS_COMPUTE_64F) != wide || (desc.scale == CUDA_R_64F) != wide)
    return "the type of the computation does not fit";
  return "";
}

bool isSupported(const cublasLtMatmulDescEmulated &desc, const Shapes &s,
                 const uint32_t *alignments) {
  if (desc.epilogue != CUBLASLT_EPILOGUE_DEFAULT &&
      (desc.epilogue != CUBLASLT_EPILOGUE_BIAS || s.d.type == CUDA_R_64F))
    return false;
  if (!isStrict())
    return true;
  for (const LtMatrix *x : {&s.a, &s.b, &s.d})
    if (size_t(x->ld) * x->width() % 16 != 0 || x->batch > 1)
      return false;
  return std::all_of(alignments, alignments + 4, [](uint32_t bytes) { return bytes >= 16; });
}

void touch(std::vector<Region> &regions, const LtMatrix &matrix, const void *data) {
  const size_t width = matrix.width();
  for (int32_t i = 0; i < (matrix.stride == 0 ? 1 : matrix.batch); ++i)
    regions.emplace_back(static_cast<const char *>(data) + int64_t(width) * i * matrix.stride,
                         matrix.rows * width, size_t(matrix.ld) * width, matrix.columns);
}

double numberAt(const void *value, int scale) {
  return scale == CUDA_R_64F ? *static_cast<const double *>(value)
                             : double(*static_cast<const float *>(value));
}

cublasStatus_t put(CUstream stream, Operation operation, LtProduct product,
                   void (*body)(const LtProduct &)) {
  operation.start = [product, body] {
    return std::function<Progress()>([product, body] {
      body(product);
      return Progress::Done;
    });
  };
  return enqueue(stream, std::move(operation)) == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS
                                                               : CUBLAS_STATUS_EXECUTION_FAILED;
}

std::string sizesOf(const LtMatrix &matrix) {
  return std::to_string(matrix.rows) + " x " + std::to_string(matrix.columns);
}

} // namespace

extern "C" {

size_t cublasLtGetVersion(void) {
  const char *other = std::getenv("CUDA_EMULATED_LT_VERSION");
  return other ? size_t(std::atoll(other)) : emulatedLtVersion;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  CUdevice device = -1;
  if (cuCtxGetDevice(&device) != CUDA_SUCCESS)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  return create(handle, cublasLtContext{});
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return destroy(handle, "cublasLtDestroy");
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, int compute, int scale) {
  cublasLtMatmulDescEmulated made;
  made.compute = compute;
  made.scale = scale;
  return create(desc, made);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  return destroy(desc, "cublasLtMatmulDescDestroy");
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, int attribute,
                                              const void *value, size_t bytes) {
  constexpr const char *function = "cublasLtMatmulDescSetAttribute";
  if (!lives(desc))
    return wrong(function, "there is no such object");
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return set(desc->transposeA, value, bytes, function);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return set(desc->transposeB, value, bytes, function);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return set(desc->epilogue, value, bytes, function);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return set(desc->bias, value, bytes, function);
  default:
    return wrong(function, "attribute " + std::to_string(attribute) + " is not emulated");
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, int type, uint64_t rows,
                                          uint64_t columns, int64_t ld) {
  if (!isKnown(type))
    return wrong("cublasLtMatrixLayoutCreate", "type " + std::to_string(type) + " is not emulated");
  cublasLtMatrixLayoutEmulated made;
  made.matrix.type = type;
  made.matrix.rows = rows;
  made.matrix.columns = columns;
  made.matrix.ld = ld;
  return create(layout, made);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy(layout, "cublasLtMatrixLayoutDestroy");
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, int attribute,
                                                const void *value, size_t bytes) {
  constexpr const char *function = "cublasLtMatrixLayoutSetAttribute";
  if (!lives(layout))
    return wrong(function, "there is no such object");
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
    return set(layout->matrix.batch, value, bytes, function);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
    return set(layout->matrix.stride, value, bytes, function);
  return wrong(function, "attribute " + std::to_string(attribute) + " is not emulated");
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  return create(preference, cublasLtMatmulPreferenceEmulated{});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy(preference, "cublasLtMatmulPreferenceDestroy");
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    int attribute, const void *value,
                                                    size_t bytes) {
  constexpr const char *function = "cublasLtMatmulPreferenceSetAttribute";
  if (!lives(preference))
    return wrong(function, "there is no such object");
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    return set(preference->workspace, value, bytes, function);
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
    return set(preference->reductions, value, bytes, function);
  int operand = attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
  if (operand >= 0 && operand < 4)
    return set(preference->alignments[operand], value, bytes, function);
  return wrong(function, "attribute " + std::to_string(attribute) + " is not emulated");
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results,
                                              int *count) {
  constexpr const char *function = "cublasLtMatmulAlgoGetHeuristic";
  if (!lives(handle) || !lives(desc) || !lives(a) || !lives(b) || !lives(c) || !lives(d) ||
      !lives(preference) || !results || !count || wanted < 1)
    return wrong(function, "an argument is null or was destroyed");
  *count = 0;
  const Shapes shapes{a->matrix, b->matrix, c->matrix, d->matrix};
  if (std::string problem = problemOf(*desc, shapes); !problem.empty())
    return wrong(function, problem);
  if (!isSupported(*desc, shapes, preference->alignments))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  for (uint64_t number = 0; number < 2 && *count < wanted; ++number) {
    Algorithm algorithm;
    algorithm.number = number;
    algorithm.workspace = number == 0 ? 0 : algorithmWorkspace;
    std::copy_n(preference->alignments, 4, algorithm.alignments);
    if (algorithm.workspace > preference->workspace)
      continue;
    cublasLtMatmulHeuristicResult_t &result = results[(*count)++];
    std::memset(&result, 0, sizeof result);
    std::memcpy(&result.algo, &algorithm, sizeof algorithm);
    result.workspaceSize = size_t(algorithm.workspace);
    result.wavesCount = 1;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algo,
                                       cublasLtMatmulHeuristicResult_t *result) {
  Algorithm algorithm;
  if (!lives(handle) || !lives(desc) || !lives(a) || !lives(b) || !lives(c) || !lives(d) || !algo ||
      !result)
    return wrong("cublasLtMatmulAlgoCheck", "an argument is null or was destroyed");
  std::memcpy(static_cast<void *>(&algorithm), algo, sizeof algorithm);
  const Shapes shapes{a->matrix, b->matrix, c->matrix, d->matrix};
  if (algorithm.magic != algorithmMagic || algorithm.number > 1 ||
      !problemOf(*desc, shapes).empty())
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!isSupported(*desc, shapes, algorithm.alignments))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  std::memset(result, 0, sizeof *result);
  result->algo = *algo;
  result->workspaceSize = size_t(algorithm.workspace);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t aOf, const void *b,
                              cublasLtMatrixLayout_t bOf, const void *beta, const void *c,
                              cublasLtMatrixLayout_t cOf, void *d, cublasLtMatrixLayout_t dOf,
                              const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspaceBytes, CUstream stream) {
  constexpr const char *function = "cublasLtMatmul";
  if (!lives(handle) || !lives(desc) || !lives(aOf) || !lives(bOf) || !lives(cOf) || !lives(dOf) ||
      !alpha || !beta || !a || !b || !d || !algo)
    return wrong(function, "an argument is null or was destroyed");
  const Shapes shapes{aOf->matrix, bOf->matrix, cOf->matrix, dOf->matrix};
  if (std::string problem = problemOf(*desc, shapes); !problem.empty())
    return wrong(function, problem);
  Algorithm algorithm;
  std::memcpy(static_cast<void *>(&algorithm), algo, sizeof algorithm);
  if (algorithm.magic != algorithmMagic)
    return wrong(function, "the algorithm is none of this library's");
  if (!isSupported(*desc, shapes, algorithm.alignments))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const void *pointers[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    if (reinterpret_cast<uintptr_t>(pointers[i]) % algorithm.alignments[i] != 0)
      return wrong(function, std::string("the algorithm was chosen for an alignment of ") +
                                 std::to_string(algorithm.alignments[i]) + ", which matrix " +
                                 "ABCD"[i] + " does not have");
  if (algorithm.workspace > workspaceBytes || (algorithm.workspace > 0 && !workspace))
    return wrong(function, "the algorithm needs " + std::to_string(algorithm.workspace) +
                               " bytes to work in");
  LtProduct product{shapes.a, shapes.b, shapes.c, shapes.d};
  product.transposeA = desc->transposeA == CUBLAS_OP_T;
  product.transposeB = desc->transposeB == CUBLAS_OP_T;
  product.at = a;
  product.bt = b;
  product.ct = c;
  product.dt = d;
  product.bias = desc->epilogue == CUBLASLT_EPILOGUE_BIAS ? desc->bias : nullptr;
  product.alpha = numberAt(alpha, desc->scale);
  product.beta = numberAt(beta, desc->scale);
  if (product.beta != 0 && !c)
    return wrong(function, "C is null");
  if (desc->epilogue == CUBLASLT_EPILOGUE_BIAS && !desc->bias)
    return wrong(function, "the bias is null");
  Operation operation;
  operation.name = "cublasLtMatmul of " + sizesOf(shapes.a) + " and " + sizesOf(shapes.b);
  touch(operation.reads, shapes.a, a);
  touch(operation.reads, shapes.b, b);
  if (product.beta != 0)
    touch(operation.reads, shapes.c, c);
  if (product.bias)
    operation.reads.emplace_back(product.bias, shapes.d.rows * shapes.d.width());
  touch(operation.writes, shapes.d, d);
  if (algorithm.workspace > 0)
    operation.writes.emplace_back(workspace, algorithm.workspace);
  return put(stream, std::move(operation), product, multiply);
}

cublasStatus_t cublasLtMatrixTransformDescCreate(cublasLtMatrixTransformDesc_t *desc, int scale) {
  cublasLtMatrixTransformDescEmulated made;
  made.scale = scale;
  return create(desc, made);
}
cublasStatus_t cublasLtMatrixTransformDescDestroy(cublasLtMatrixTransformDesc_t desc) {
  return destroy(desc, "cublasLtMatrixTransformDescDestroy");
}
cublasStatus_t cublasLtMatrixTransformDescSetAttribute(cublasLtMatrixTransformDesc_t desc,
                                                       int attribute, const void *value,
                                                       size_t bytes) {
  constexpr const char *function = "cublasLtMatrixTransformDescSetAttribute";
  if (!lives(desc))
    return wrong(function, "there is no such object");
  if (attribute == CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA)
    return set(desc->transposeA, value, bytes, function);
  return wrong(function, "attribute " + std::to_string(attribute) + " is not emulated");
}

cublasStatus_t cublasLtMatrixTransform(cublasLtHandle_t handle, cublasLtMatrixTransformDesc_t desc,
                                       const void *alpha, const void *a, cublasLtMatrixLayout_t aOf,
                                       const void *beta, const void *b, cublasLtMatrixLayout_t bOf,
                                       void *c, cublasLtMatrixLayout_t cOf, CUstream stream) {
  constexpr const char *function = "cublasLtMatrixTransform";
  if (!lives(handle) || !lives(desc) || !lives(aOf) || !lives(cOf) || !alpha || !beta || !a || !c ||
      (b && !lives(bOf)))
    return wrong(function, "an argument is null or was destroyed");
  LtProduct product{aOf->matrix, b ? bOf->matrix : LtMatrix{}, cOf->matrix, cOf->matrix};
  product.transposeA = desc->transposeA == CUBLAS_OP_T;
  const LtMatrix &from = product.a, &to = product.d;
  const uint64_t rows = product.transposeA ? from.columns : from.rows;
  const uint64_t columns = product.transposeA ? from.rows : from.columns;
  if (rows != to.rows || columns != to.columns || from.type != to.type || from.batch != to.batch ||
      from.ld < int64_t(from.rows) || to.ld < int64_t(to.rows))
    return wrong(function, "the matrices do not fit");
  product.at = a;
  product.bt = b;
  product.dt = c;
  product.alpha = numberAt(alpha, desc->scale);
  product.beta = numberAt(beta, desc->scale);
  Operation operation;
  operation.name = "cublasLtMatrixTransform of " + sizesOf(from);
  touch(operation.reads, from, a);
  if (b)
    touch(operation.reads, product.b, b);
  touch(operation.writes, to, c);
  return put(stream, std::move(operation), product, transform);
}

} // extern "C"
