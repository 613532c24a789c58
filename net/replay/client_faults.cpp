#include "net/replay/client_faults.hpp"

#include "runtime/counter_random.hpp"

namespace net {

uint32_t leaves_after(const ClientFaults& faults, const Play& play, uint32_t output_tokens) {
  if (faults.leave_share <= 0) return 0;
  const runtime::CounterRandom random(faults.seed, "clients that leave");
  const uint64_t id = uint64_t{play.round} << 32 | play.request;
  if (random.uniform(2 * id) >= faults.leave_share) return 0;
  return 1 + static_cast<uint32_t>(random.uniform(2 * id + 1) * output_tokens);
}

}  // namespace net
