// What an optimizing compiler inlines: a method of the user's that calls one of the library.
#include <atomic>
#include <cstdint>

namespace ring {
struct Ring {
  std::atomic<uint64_t> count;
  std::atomic<uint64_t> slots[8];
  void put(uint64_t value) {
    uint64_t number = count.fetch_add(1, std::memory_order_relaxed);
    slots[number].store(value, std::memory_order_release);
  }
};

static inline void store_nowhere(volatile int *at) { *at = 1; }
static inline void fail(uint64_t at) { store_nowhere(reinterpret_cast<int *>(at)); }
}  // namespace ring

extern "C" void fill(ring::Ring *ring, int count) {
  for (int i = 0; i < count; i++) ring->put(i + 1);
}
extern "C" void wild(uint64_t at) { ring::fail(at); }
