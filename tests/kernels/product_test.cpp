// Products of the backward pass against plain loops in double: any transposition, ragged sizes,
// storing and adding.
#include "kernels/train/product.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "kernels/cpu/scratch.hpp"
#include "tests/kernels/tools.hpp"

using namespace kernels;

namespace {

struct Shape {
  size_t m, n, k;
};

// Product of random operands whose rows lie up to 3 floats further apart than they are long.
struct Case {
  Shape shape;
  bool a_transposed, b_transposed;
  size_t a_ld, b_ld, c_ld;
  std::vector<float> a, b, before;

  Case(std::mt19937& rng, const Shape& s, bool a_t, bool b_t)
      : shape(s),
        a_transposed(a_t),
        b_transposed(b_t),
        a_ld((a_t ? s.m : s.k) + rng() % 4),
        b_ld((b_t ? s.k : s.n) + rng() % 4),
        c_ld(s.n + rng() % 4),
        a(tools::random_floats(rng, (a_t ? s.k : s.m) * a_ld)),
        b(tools::random_floats(rng, (b_t ? s.n : s.k) * b_ld)),
        before(tools::random_floats(rng, s.m * c_ld)) {}

  std::vector<float> run(bool add) const {
    cpu::Scratch scratch;
    std::vector<float> c = before;
    multiply({shape.m,
              shape.n,
              shape.k,
              {a.data(), a_ld},
              {b.data(), b_ld},
              a_transposed,
              b_transposed,
              {c.data(), c_ld},
              add},
             scratch.reserve(kProductScratch));
    return c;
  }
  // What is not part of c stays as it was.
  std::vector<double> expected(bool add) const {
    std::vector<double> c(before.begin(), before.end());
    for (size_t i = 0; i < shape.m; ++i) {
      for (size_t j = 0; j < shape.n; ++j) {
        double sum = add ? before[i * c_ld + j] : 0.0;
        for (size_t x = 0; x < shape.k; ++x)
          sum += double{a[a_transposed ? x * a_ld + i : i * a_ld + x]} *
                 b[b_transposed ? j * b_ld + x : x * b_ld + j];
        c[i * c_ld + j] = sum;
      }
    }
    return c;
  }
};

}  // namespace

TEST_CASE("A product agrees with double precision for every transposition and ragged size",
          "[kernels]") {
  std::mt19937 rng(1);
  tools::for_each_target([&] {
    for (const Shape& shape :
         {Shape{1, 1, 1}, Shape{6, 16, 4}, Shape{7, 17, 5}, Shape{5, 15, 300}, Shape{13, 100, 257},
          Shape{200, 31, 96}, Shape{194, 530, 33}, Shape{41, 64, 513}, Shape{2, 3, 0}}) {
      for (unsigned bits = 0; bits < 8; ++bits) {
        const Case c(rng, shape, (bits & 1u) != 0, (bits & 2u) != 0);
        const bool add = (bits & 4u) != 0;
        INFO(shape.m << " x " << shape.n << " x " << shape.k << " transposed " << c.a_transposed
                     << c.b_transposed << " add " << add);
        CHECK(tools::relative_error(c.run(add), c.expected(add)) < 5e-6);
      }
    }
  });
}

TEST_CASE("No row or column of a product depends on how many there are", "[kernels]") {
  std::mt19937 rng(2);
  tools::for_each_target([&] {
    const Case whole(rng, {50, 40, 300}, false, false);
    Case part = whole;
    part.shape.m = 9, part.shape.n = 21;
    const auto all = whole.run(false), some = part.run(false);
    for (size_t i = 0; i < part.shape.m; ++i)
      CHECK(std::memcmp(&all[i * whole.c_ld], &some[i * whole.c_ld],
                        part.shape.n * sizeof(float)) == 0);
  });
}
