// A lock-free ring of FXT records that several threads write and that keeps the newest ones.
//
// Memory: control words, then the records that every reader needs (magic, initialization, strings,
// threads), then slots of 64 bytes. Word 0 of a slot says which record it holds:
//
//   0                 none yet
//   2 * (n + 1)       record n, committed
//   2 * (n + 1) + 1   a thread is writing record n
//
// A thread takes a number, claims the slot of that number, stores the record, and commits it with
// one store. A slot that another thread still writes is not claimed: the record is dropped.
//
// Bugs to be found:
//   RING_BUG_COMMIT_FIRST  commits before the payload is there
//   RING_BUG_WRAP          claims a slot without looking whether another thread is still in it
#include <stdatomic.h>
#include <stdint.h>
#include <x86intrin.h>

enum { SLOT_WORDS = 8, RECORD_WORDS = 6, PROLOGUE_WORD = 8, MAX_PROLOGUE_WORDS = 48 };

typedef _Atomic uint64_t word_t;

struct ring {
  word_t magic;           // "FXTRING1"
  word_t next;            // number of the next record
  word_t slots;           // how many slots there are
  word_t prologue_words;  // words of the records before the slots
  word_t first_slot;      // word at which the slots begin
  word_t dropped;
  word_t reserved[2];
};

static void put(word_t *at, uint64_t value) {
  atomic_store_explicit(at, value, memory_order_relaxed);
}

static uint64_t string_record(uint64_t index, uint64_t bytes) {
  return 2 | 2 << 4 | index << 16 | bytes << 32;  // two words: this one, up to 8 bytes
}

// Writes what stands before the slots. Threads 1 and 2 are the writers.
void ring_init(struct ring *ring, uint64_t slots, uint64_t ticks_per_second) {
  word_t *word = (word_t *)ring + PROLOGUE_WORD;
  word_t *at = word;
  put(at++, 0x0016547846040010);  // magic
  put(at++, 1 | 2 << 4);          // initialization
  put(at++, ticks_per_second);
  put(at++, string_record(1, 4));
  put(at++, 0x676e6972);  // "ring"
  put(at++, string_record(2, 4));
  put(at++, 0x6b726f77);  // "work"
  put(at++, string_record(3, 1));
  put(at++, 'a');
  put(at++, string_record(4, 1));
  put(at++, 'b');
  for (uint64_t thread = 1; thread <= 2; thread++) {
    put(at++, 3 | 3 << 4 | thread << 16);
    put(at++, 1000);           // process
    put(at++, 1000 + thread);  // thread
  }
  put(&ring->prologue_words, (uint64_t)(at - word));
  put(&ring->first_slot, PROLOGUE_WORD + MAX_PROLOGUE_WORDS);
  put(&ring->slots, slots);
  atomic_store_explicit(&ring->magic, 0x31474e4952545846, memory_order_release);
}

static void store_record(word_t *at, uint64_t thread, uint64_t value) {
  // An instant event of two arguments, which belong together: a is value, b its complement.
  put(at + 0, 4 | RECORD_WORDS << 4 | 2 << 20 | thread << 24 | (uint64_t)1 << 32 | (uint64_t)2 << 48);
  put(at + 1, __rdtsc());
  put(at + 2, 4 | 2 << 4 | 3 << 16);
  put(at + 3, value);
  put(at + 4, 4 | 2 << 4 | 4 << 16);
  put(at + 5, ~value);
}

static int claim(word_t *slot, uint64_t mark) {
#ifdef RING_BUG_WRAP
  put(slot, mark + 1);
  return 1;
#else
  uint64_t held = atomic_load_explicit(slot, memory_order_relaxed);
  // Neither one that a thread still writes, nor one that is newer already.
  while (!(held & 1) && held < mark) {
    if (atomic_compare_exchange_weak_explicit(slot, &held, mark + 1, memory_order_acquire,
                                              memory_order_relaxed))
      return 1;
  }
  return 0;
#endif
}

// Writes one record; 0 where it was dropped.
int ring_write(struct ring *ring, uint64_t thread, uint64_t value) {
  uint64_t number = atomic_fetch_add_explicit(&ring->next, 1, memory_order_relaxed);
  uint64_t slots = atomic_load_explicit(&ring->slots, memory_order_relaxed);
  word_t *slot = (word_t *)ring + PROLOGUE_WORD + MAX_PROLOGUE_WORDS + number % slots * SLOT_WORDS;
  uint64_t mark = 2 * (number + 1);
  if (!claim(slot, mark)) {
    atomic_fetch_add_explicit(&ring->dropped, 1, memory_order_relaxed);
    return 0;
  }
#ifdef RING_BUG_COMMIT_FIRST
  atomic_store_explicit(slot, mark, memory_order_release);
  store_record(slot + 1, thread, value);
#else
  store_record(slot + 1, thread, value);
  atomic_store_explicit(slot, mark, memory_order_release);
#endif
  return 1;
}

void ring_fill(struct ring *ring, uint64_t thread, uint64_t count) {
  for (uint64_t number = 0; number < count; number++) ring_write(ring, thread, thread << 32 | number);
}
