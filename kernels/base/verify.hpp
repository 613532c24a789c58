// VERIFY aborts on a broken program, in release builds too; user input never reaches one.
// DVERIFY is for inner loops: it exists in debug builds only.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace kernels {

[[noreturn]] inline void verify_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: VERIFY(%s) failed\n", file, line, condition);
  std::abort();
}

}  // namespace kernels

#define VERIFY(condition) \
  ((condition) ? (void)0 : ::kernels::verify_failed(#condition, __FILE__, __LINE__))

#ifdef NDEBUG
#define DVERIFY(condition) ((void)0)
#else
#define DVERIFY(condition) VERIFY(condition)
#endif
