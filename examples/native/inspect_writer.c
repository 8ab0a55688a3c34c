// An Inspect writer (version 2) for one integer property that two threads count up.
//
// Readers know by the generation count in the header whether somebody writes: it is odd then. The
// threads exclude each other by Peterson's lock, which needs its store to be seen before it looks
// at the other thread's: on x86 that takes a fence.
//
// Bugs to be found:
//   INSPECT_BUG_NO_FENCE  forgets the fence: both threads write at a time (memory_order="tso")
//   INSPECT_BUG_NO_ODD    stores the value while the generation count is even
//   INSPECT_BUG_NO_EVEN   leaves the generation count odd
#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t word_t;

static void put(word_t *at, uint64_t value) {
  atomic_store_explicit(at, value, memory_order_relaxed);
}
static uint64_t get(word_t *at) { return atomic_load_explicit(at, memory_order_relaxed); }

enum { HEADER = 3, INT_VALUE = 4, FREE = 0, STRING_REFERENCE = 14 };
enum { GENERATION = 1, VALUE = 5 };  // words of the VMO

static uint64_t block(uint64_t order, uint64_t type) { return order | type << 8; }

// A VMO of 4096 bytes: header, the property "hits", its name, free blocks.
void inspect_init(word_t *vmo) {
  put(vmo + 0, block(1, 2) | (uint64_t)2 << 16 | (uint64_t)0x50534e49 << 32);  // "INSP", version 2
  put(vmo + 1, 1);
  put(vmo + 2, 4096);
  put(vmo + 4, block(0, INT_VALUE) | (uint64_t)0 << 16 | (uint64_t)3 << 40);
  put(vmo + VALUE, 0);
  put(vmo + 6, block(0, STRING_REFERENCE));
  put(vmo + 7, 4 | (uint64_t)0x73746968 << 32);  // "hits"
  put(vmo + 6, get(vmo + 6) | (uint64_t)1 << 40);
  uint64_t at = 4;  // in units of 16 bytes
  for (uint64_t order = 2; order < 8; order++, at *= 2) put(vmo + 2 * at, block(order, FREE));
  atomic_store_explicit(vmo + GENERATION, 2, memory_order_release);
}

static word_t wants[2], turn;

static void lock(int me) {
  put(&wants[me], 1);
  put(&turn, (uint64_t)!me);
#ifndef INSPECT_BUG_NO_FENCE
  atomic_thread_fence(memory_order_seq_cst);
#endif
  while (atomic_load_explicit(&wants[!me], memory_order_acquire) &&
         atomic_load_explicit(&turn, memory_order_acquire) != (uint64_t)me) {
  }
}

static void unlock(int me) { atomic_store_explicit(&wants[me], 0, memory_order_release); }

void inspect_add(word_t *vmo, int me) {
  lock(me);
  uint64_t generation = get(vmo + GENERATION);
#ifdef INSPECT_BUG_NO_ODD
  put(vmo + VALUE, get(vmo + VALUE) + 1);
#endif
  atomic_store_explicit(vmo + GENERATION, generation + 1, memory_order_release);
#ifndef INSPECT_BUG_NO_ODD
  put(vmo + VALUE, get(vmo + VALUE) + 1);
#endif
#ifndef INSPECT_BUG_NO_EVEN
  atomic_store_explicit(vmo + GENERATION, generation + 2, memory_order_release);
#endif
  unlock(me);
}

void inspect_count(word_t *vmo, int me, int times) {
  for (int i = 0; i < times; i++) inspect_add(vmo, me);
}
