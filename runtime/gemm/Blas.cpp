// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/gemm/Blas.h"

#include "runtime/support/Failure.h"

#include <cstdlib>
#include <dlfcn.h>
#include <limits>
#include <mutex>
#include <type_traits>
#include <vector>

namespace shardc::rt {

namespace {

/// Naming conventions of cblas builds: PyPI's scipy-openblas prefixes, 64-bit builds suffix.
struct Naming {
  const char *prefix, *suffix;
  bool wide;
};
constexpr Naming namings[] = {
    {"", "", false}, {"scipy_", "", false}, {"scipy_", "64_", true}, {"", "64_", true}};

std::string withAffixes(const Naming &naming, const char *name) {
  return std::string(naming.prefix) + name + naming.suffix;
}

/// The folder of the library (or program) that contains this code.
std::string ownFolder() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<void *>(&ownFolder), &info) || !info.dli_fname)
    return "";
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

} // namespace

Blas::~Blas() {
  if (handle)
    dlclose(handle);
}

bool Blas::bind(std::string &problem) {
  for (const Naming &naming : namings) {
    sgemm = dlsym(handle, withAffixes(naming, "cblas_sgemm").c_str());
    dgemm = dlsym(handle, withAffixes(naming, "cblas_dgemm").c_str());
    if (!sgemm || !dgemm)
      continue;
    wideIntegers = naming.wide;
    // The rank's own threads split the work. Each library has its own name for this setting.
    for (const char *setter : {"openblas_set_num_threads", "MKL_Set_Num_Threads"})
      if (void *set = dlsym(handle, withAffixes(naming, setter).c_str()))
        reinterpret_cast<void (*)(int)>(set)(1);
    if (void *set = dlsym(handle, "bli_thread_set_num_threads"))
      reinterpret_cast<void (*)(int64_t)>(set)(1);
    return true;
  }
  problem = "it has no cblas_sgemm and cblas_dgemm";
  return false;
}

std::shared_ptr<const Blas> Blas::load(const std::string &path) {
  std::shared_ptr<Blas> blas(new Blas);
  if (path == "none") {
    blas->text = "plain matrix product (asked for)";
    return blas;
  }
  std::string problem;
  blas->handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!blas->handle)
    problem = dlerror();
  else if (blas->bind(problem))
    blas->text = path;
  if (!problem.empty())
    throw Failure(SHARDRT_NOT_FOUND, "BLAS library " + path + ": " + problem);
  return blas;
}

std::shared_ptr<const Blas> Blas::shared() {
  static std::mutex mutex;
  static std::shared_ptr<const Blas> instance;
  std::lock_guard lock(mutex);
  if (instance)
    return instance;
  if (const char *asked = std::getenv("SHARDRT_BLAS"); asked && *asked)
    return instance = load(asked);
  std::vector<std::string> candidates;
#ifdef SHARDRT_BLAS_LIBRARY
  candidates.push_back(SHARDRT_BLAS_LIBRARY);
#endif
  std::string folder = ownFolder();
  for (const char *name : {"libscipy_openblas.so", "libopenblas.so.0", "libopenblas.so"})
    candidates.push_back(folder + "/" + name);
  for (const char *name : {"libopenblas.so.0", "libcblas.so.3", "libblas.so.3"})
    candidates.push_back(name);
  std::string tried;
  for (const std::string &candidate : candidates) {
    try {
      return instance = load(candidate);
    } catch (const Failure &) {
      tried += (tried.empty() ? "" : ", ") + candidate;
    }
  }
  std::shared_ptr<Blas> plain(new Blas);
  plain->text = "no BLAS library found (tried " + tried +
                "): matrix products use the slow plain code; set SHARDRT_BLAS to a library";
  return instance = plain;
}

template <typename T> bool Blas::callLibrary(const Product<T> &p) const {
  constexpr int rowMajor = 101, plain = 111, transposed = 112; // CBLAS_LAYOUT, CBLAS_TRANSPOSE
  int ta = p.transposeA ? transposed : plain, tb = p.transposeB ? transposed : plain;
  void *function = std::is_same_v<T, float> ? sgemm : dgemm;
  auto call = [&](auto integer) {
    using I = decltype(integer);
    using Gemm = void (*)(int, int, int, I, I, I, T, const T *, I, const T *, I, T, T *, I);
    reinterpret_cast<Gemm>(function)(rowMajor, ta, tb, I(p.m), I(p.n), I(p.k), p.alpha, p.a,
                                     I(p.lda), p.b, I(p.ldb), p.beta, p.c, I(p.ldc));
  };
  if (wideIntegers) {
    call(int64_t());
    return true;
  }
  for (int64_t value : {p.m, p.n, p.k, p.lda, p.ldb, p.ldc})
    if (value > std::numeric_limits<int32_t>::max())
      return false;
  call(int32_t());
  return true;
}

void Blas::multiply(const Product<float> &product) const {
  if (!handle || !callLibrary(product))
    multiplyPlain(product);
}
void Blas::multiply(const Product<double> &product) const {
  if (!handle || !callLibrary(product))
    multiplyPlain(product);
}

} // namespace shardc::rt
