// Kimi Delta Attention, element by element (Kimi Linear report). Decode and prefill
// run these functions in the same order, so they agree to the last bit.
//
//   S <- e^g S;   u = beta (v - S^T k);   S <- S + k u;   o = S^T q
//
// A lane owns a value column and walks the keys in ascending order.
#if defined(KERNELS_KDA_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_KDA_HPP_
#else
#define KERNELS_KDA_HPP_
#endif

#include "kernels/norm.hpp"

KERNEL_NAMESPACE_BEGIN

// Log-decay g of one key channel. `rate` = exp(A_log) of the head. Bounded (K3): g = lower_bound
// sigmoid(rate (f + dt)); otherwise (Kimi-Linear): g = -rate softplus(f + dt), which may be so
// negative that e^g is 0.
template <class F>
KERNEL_FN F kda_log_decay(F f, F dt_bias, F rate, bool has_lower_bound, float lower_bound) {
  const F z = f + dt_bias;
  return has_lower_bound ? F(lower_bound) * math::sigmoid(rate * z)
                         : (F(0.0f) - rate) * math::softplus(z);
}

template <class F>
KERNEL_FN F kda_decay(F f, F dt_bias, F rate, bool has_lower_bound, float lower_bound) {
  return math::exp_up_to_40(kda_log_decay(f, dt_bias, rate, has_lower_bound, lower_bound));
}

// First half of a token: decays one state element and adds it to the prediction S^T k.
template <class F>
KERNEL_FN F kda_decay_predict(F state, F decay, F key, F& predicted) {
  const F decayed = state * decay;
  predicted = multiply_add(decayed, key, predicted);
  return decayed;
}

// What the token writes along its key.
template <class F>
KERNEL_FN F kda_update(F value, F predicted, F beta) {
  return (value - predicted) * beta;
}

// Second half: writes the update into one state element and adds it to the read-out S^T q.
template <class F>
KERNEL_FN F kda_write_read(F state, F update, F key, F query, F& out) {
  const F written = multiply_add(update, key, state);
  out = multiply_add(written, query, out);
  return written;
}

// Gated RMSNorm of one output element.
template <class F>
KERNEL_FN F kda_output(F out, F inverse, F weight, F gate) {
  return rms_scale(out, inverse, weight) * math::sigmoid(gate);
}

KERNEL_NAMESPACE_END
#endif
