// Two threads count without a lock: an update is lost where one loads before the other stores.
#include <stdint.h>

struct pair { uint32_t low; uint64_t count; } __attribute__((packed));

void count(uint64_t *v) { v[0]++; }
void count_volatile(volatile uint64_t *v) { v[0] += 1; }
void set_flag(volatile uint8_t *v, int bit) { v[0] |= 1 << bit; }
void count_atomically(uint64_t *v) { __atomic_fetch_add(v, 1, __ATOMIC_RELAXED); }
// The count lies across two cache lines if v is 8 bytes before the end of one.
void store_packed(struct pair *v) { v->count = ~(uint64_t)0; }
// The same through a function of the target, which stores a digit.
int snprintf(char *at, unsigned long size, const char *form, ...);
void count_in_text(volatile char *v) {
  int digit = v[0];
  snprintf((char *)v, 2, "%c", digit + 1);
}
