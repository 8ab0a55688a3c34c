// Readings of time, and waits for it.
#include <stdint.h>
#include <x86intrin.h>

typedef struct { int64_t seconds, ns; } timespec_t;
int clock_gettime(int clock, timespec_t *at);
int64_t zx_clock_get_monotonic(void);
int64_t zx_clock_get_boot(void);
int64_t zx_ticks_get(void);
int zx_nanosleep(int64_t deadline);

static uint64_t now(int what) {
  unsigned aux;
  timespec_t at;
  switch (what) {
    case 0: return __rdtsc();
    case 1: return __rdtscp(&aux);
    case 2: return (uint64_t)zx_clock_get_monotonic();
    case 3: return (uint64_t)zx_clock_get_boot();
    case 4: return (uint64_t)zx_ticks_get();
    default: clock_gettime(1, &at); return (uint64_t)(at.seconds * 1000000000 + at.ns);
  }
}

// Word 0 counts the stamps, which follow.
void stamp(volatile uint64_t *log, int what, int count) {
  for (int i = 0; i < count; i++) {
    log[1 + i] = now(what);
    log[0] = 1 + i;
  }
}

// Each thread takes the next place and stamps it.
void stamp_next(uint64_t *log, int what) {
  uint64_t place = __atomic_fetch_add(&log[0], 1, __ATOMIC_SEQ_CST);
  __atomic_store_n(&log[1 + place], now(what), __ATOMIC_RELEASE);
}

// The same under a lock: places and times are in one order.
void stamp_locked(uint64_t *log, int what) {
  while (__atomic_load_n(&log[8], __ATOMIC_RELAXED) || __atomic_exchange_n(&log[8], 1, __ATOMIC_ACQUIRE)) {}
  uint64_t place = log[0];
  log[1 + place] = now(what);
  log[0] = place + 1;
  __atomic_store_n(&log[8], 0, __ATOMIC_RELEASE);
}

uint64_t wait(volatile uint64_t *out, int what, uint64_t length) {
  uint64_t begin = now(what), end;
  do end = now(what); while (end - begin < length);
  return out[0] = end - begin;
}

uint64_t sleep_until(volatile uint64_t *out, uint64_t ns) {
  int64_t begin = zx_clock_get_monotonic();
  while (zx_clock_get_monotonic() < begin + (int64_t)ns) zx_nanosleep(begin + (int64_t)ns);
  return out[0] = (uint64_t)(zx_clock_get_monotonic() - begin);
}

// The time that a loop of 4 instructions takes.
uint64_t spin(int what, uint64_t rounds) {
  uint64_t begin = now(what);
  __asm__ volatile("1: nop; nop; dec %0; jnz 1b" : "+r"(rounds) : : "cc");
  return now(what) - begin;
}
