// The sweep of a KDA head's state over a few tokens. Included once per SIMD target.
#if defined(KERNELS_CPU_KDA_SWEEP_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_CPU_KDA_SWEEP_HPP_
#else
#define KERNELS_CPU_KDA_SWEEP_HPP_
#endif

#include "kernels/cpu/kda_head.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

// The value columns of a state tile that are swept together: V vectors.
template <size_t V>
struct Strip {
  Lanes x[V];

  static KERNEL_FN Strip zero() {
    Strip strip;
#pragma GCC unroll 8
    for (size_t i = 0; i < V; ++i) strip.x[i] = Lanes::zero();
    return strip;
  }
};

// fn(key, its row of the tile) for the keys [begin, end), multiples of kKeysTogether: the fewer
// instructions beside the arithmetic, the less a core that is shared with another thread loses.
constexpr size_t kKeysTogether = 4;

template <size_t V, class Fn>
KERNEL_FN void for_keys(float* tile, size_t begin, size_t end, const Fn& fn) {
  float* row = tile + begin * V * kWidth;
  for (size_t i = begin; i < end; i += kKeysTogether, row += kKeysTogether * V * kWidth) {
#pragma GCC unroll 4
    for (size_t j = 0; j < kKeysTogether; ++j) fn(i + j, row + j * V * kWidth);
  }
}

// Decays a tile by token 0 and sums its prediction; kStore = false leaves the state for a second
// pass.
template <bool kStore, size_t V>
KERNEL_FN Strip<V> decay_predict(const KdaTokens& x, float* tile) {
  Strip<V> predicted = Strip<V>::zero();
  for_keys<V>(tile, 0, x.d, [&](size_t i, float* row) KERNEL_LAMBDA {
    const Lanes decay(x.decay[i]), key(x.k[i]);
#pragma GCC unroll 8
    for (size_t j = 0; j < V; ++j) {
      const Lanes s = kda_decay_predict(Lanes::load(row + j * kWidth), decay, key, predicted.x[j]);
      if (kStore) s.store(row + j * kWidth);
    }
  });
  return predicted;
}

// The update of token t, written over its values. It stays in memory: together with two sums per
// vector it would not fit the registers, and an operand of a multiply-add may as well be loaded.
template <size_t V>
KERNEL_FN const float* update_of(const KdaTokens& x, size_t t, size_t column,
                                 const Strip<V>& predicted) {
  float* update = x.v + t * x.d + column;
#pragma GCC unroll 8
  for (size_t i = 0; i < V; ++i) {
    kda_update(Lanes::load(update + i * kWidth), predicted.x[i], Lanes(x.beta[t]))
        .store(update + i * kWidth);
  }
  return update;
}

template <size_t V>
KERNEL_FN void store_out(const KdaTokens& x, size_t t, size_t column, const Strip<V>& out) {
#pragma GCC unroll 8
  for (size_t i = 0; i < V; ++i) out.x[i].store(x.out + t * x.d + column + i * kWidth);
}

// One token: the state is read twice and written once, the decay computed twice (to the same bits)
// rather than stored. The second pass finds its tile in L1, and fetches the next one meanwhile. Not
// inlined, as many_tokens: constants of the code around it would take the registers of its sums.
template <size_t V>
HWY_NOINLINE void single_token(const KdaTokens& x, float* tile, size_t column) {
  const Strip<V> predicted = decay_predict<false, V>(x, tile);
  const float* update = update_of<V>(x, 0, column, predicted);
  const size_t next_tile = x.d * V * kWidth;
  Strip<V> out = Strip<V>::zero();
  for_keys<V>(tile, 0, x.d, [&](size_t i, float* row) KERNEL_LAMBDA {
    for (size_t j = 0; j < V * kWidth; j += 16) __builtin_prefetch(row + next_tile + j, 0, 3);
    const Lanes decay(x.decay[i]), key(x.k[i]), query(x.q[i]);
#pragma GCC unroll 8
    for (size_t j = 0; j < V; ++j) {
      const Lanes s = Lanes::load(row + j * kWidth) * decay;
      kda_write_read(s, Lanes::load(update + j * kWidth), key, query, out.x[j])
          .store(row + j * kWidth);
    }
  });
  store_out(x, 0, column, out);
}

// Rows of a few arrays that are needed after a chunk's sweep, which waits for no memory and so
// fetches them on its way: they lie far apart, where no hardware prefetch follows.
struct RowsToFetch {
  struct Array {
    const float* at;  // of the chunk's first token
    size_t ld;
  };
  static constexpr size_t kMost = 6;
  Array array[kMost] = {};
  size_t count = 0;

  void add(const Rows& rows, size_t row, size_t column) {
    array[count++] = {rows.data + row * rows.ld + column, rows.ld};
  }
  // Array i's part of token t's row.
  KERNEL_FN void fetch(size_t i, size_t t, size_t column, size_t floats) const {
    if (i >= count) return;
    const float* from = array[i].at + t * array[i].ld + column;
    for (size_t j = 0; j < floats; j += 16) __builtin_prefetch(from + j, 0, 2);
  }
};

// Several tokens: one sweep writes and reads token t and decays and predicts token t + 1, so each
// state element is loaded and stored once per token.
template <size_t V>
HWY_NOINLINE void many_tokens(const KdaTokens& x, size_t tokens, float* tile, size_t column,
                              const RowsToFetch& ahead) {
  constexpr size_t kTurn = 16;  // keys; d is a multiple of it
  const size_t d = x.d;
  Strip<V> predicted = decay_predict<true, V>(x, tile);
  for (size_t t = 0; t + 1 < tokens; ++t) {
    const float* key = x.k + t * d;
    const float* query = x.q + t * d;
    const float* next_decay = x.decay + (t + 1) * d;
    const float* next_key = x.k + (t + 1) * d;
    const float* update = update_of<V>(x, t, column, predicted);
    predicted = Strip<V>::zero();
    Strip<V> out = Strip<V>::zero();
    for (size_t turn = 0; turn < d; turn += kTurn) {
      ahead.fetch(turn / kTurn, t, column, V * kWidth);
      for_keys<V>(tile, turn, turn + kTurn, [&](size_t i, float* row) KERNEL_LAMBDA {
        // Read before the stores below, which for all the compiler knows could change them.
        const Lanes k(key[i]), q(query[i]), e(next_decay[i]), next_k(next_key[i]);
#pragma GCC unroll 8
        for (size_t j = 0; j < V; ++j) {
          const Lanes s = kda_write_read(Lanes::load(row + j * kWidth),
                                         Lanes::load(update + j * kWidth), k, q, out.x[j]);
          kda_decay_predict(s, e, next_k, predicted.x[j]).store(row + j * kWidth);
        }
      });
    }
    store_out(x, t, column, out);
  }
  const size_t last = tokens - 1;
  const float* update = update_of<V>(x, last, column, predicted);
  Strip<V> out = Strip<V>::zero();
  for_keys<V>(tile, 0, d, [&](size_t i, float* row) KERNEL_LAMBDA {
    const Lanes key(x.k[last * d + i]), query(x.q[last * d + i]);
#pragma GCC unroll 8
    for (size_t j = 0; j < V; ++j) {
      kda_write_read(Lanes::load(row + j * kWidth), Lanes::load(update + j * kWidth), key, query,
                     out.x[j])
          .store(row + j * kWidth);
    }
  });
  store_out(x, last, column, out);
}

template <size_t V>
void recur_tiles(const KdaTokens& x, size_t tokens, float* state, const RowsToFetch& ahead) {
  for (size_t column = 0; column < x.d; column += V * kWidth) {
    float* tile = state + column * x.d;
    if (tokens == 1) {
      single_token<V>(x, tile, column);
    } else {
      many_tokens<V>(x, tokens, tile, column, ahead);
    }
  }
}

// state: [d / tile][d][tile], value tiles of 32 columns, or of 16 where d is no multiple of 32.
void recur(const KdaTokens& x, size_t tokens, float* state, const RowsToFetch& ahead) {
  if (x.d % 32 == 0) return recur_tiles<2 * kPer16>(x, tokens, state, ahead);
  recur_tiles<kPer16>(x, tokens, state, ahead);
}

}  // namespace
KERNEL_NAMESPACE_END
#endif
