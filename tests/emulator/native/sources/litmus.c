// Litmus tests: x is v[0], y is v[1], what thread n read is in v[8 + 2n] and v[9 + 2n].
#include <stdint.h>

typedef volatile uint64_t *memory;

#define MFENCE __asm__ volatile("mfence" ::: "memory")
#define SFENCE __asm__ volatile("sfence" ::: "memory")
#define LFENCE __asm__ volatile("lfence" ::: "memory")

void store_x(memory v) { v[0] = 1; }
void store_y(memory v) { v[1] = 1; }
void store_x_y(memory v) { v[0] = 1; v[1] = 1; }
void sb_0(memory v) { v[0] = 1; v[8] = v[1]; }
void sb_1(memory v) { v[1] = 1; v[10] = v[0]; }
void sb_mfence_0(memory v) { v[0] = 1; MFENCE; v[8] = v[1]; }
void sb_mfence_1(memory v) { v[1] = 1; MFENCE; v[10] = v[0]; }
void sb_sfence_0(memory v) { v[0] = 1; SFENCE; v[8] = v[1]; }
void sb_sfence_1(memory v) { v[1] = 1; SFENCE; v[10] = v[0]; }
void sb_lfence_0(memory v) { v[0] = 1; LFENCE; v[8] = v[1]; }
void sb_lfence_1(memory v) { v[1] = 1; LFENCE; v[10] = v[0]; }
void sb_xchg_0(memory v) { __atomic_exchange_n(&v[0], 1, __ATOMIC_SEQ_CST); v[8] = v[1]; }
void sb_xchg_1(memory v) { __atomic_exchange_n(&v[1], 1, __ATOMIC_SEQ_CST); v[10] = v[0]; }
void sb_lock_0(memory v) { v[0] = 1; __atomic_fetch_add(&v[4], 1, __ATOMIC_SEQ_CST); v[8] = v[1]; }
void sb_lock_1(memory v) { v[1] = 1; __atomic_fetch_add(&v[5], 1, __ATOMIC_SEQ_CST); v[10] = v[0]; }
void mp_1(memory v) { v[10] = v[1]; v[11] = v[0]; }
void lb_0(memory v) { v[8] = v[1]; v[0] = 1; }
void lb_1(memory v) { v[10] = v[0]; v[1] = 1; }
void w2_0(memory v) { v[0] = 1; v[1] = 2; }
void w2_1(memory v) { v[1] = 1; v[0] = 2; }
void forward_0(memory v) { v[0] = 1; v[8] = v[0]; v[9] = v[1]; }
void forward_1(memory v) { v[1] = 1; v[10] = v[1]; v[11] = v[0]; }
void r_0(memory v) { v[0] = 1; v[1] = 1; }
void r_1(memory v) { v[1] = 2; v[10] = v[0]; }
void iriw_2(memory v) { v[12] = v[0]; v[13] = v[1]; }
void iriw_3(memory v) { v[14] = v[1]; v[15] = v[0]; }
void add(memory v) { for (int i = 0; i < 2; i++) v[0] = v[0] + 1; }
void add_atomically(memory v) { for (int i = 0; i < 2; i++) __atomic_fetch_add(&v[0], 1, __ATOMIC_SEQ_CST); }

// A ring of four records, each of two words, without a locked instruction: v[0] is the head, v[1]
// the tail, v[2] what the consumer has read.
void produce(memory v, int count) {
  for (int i = 1; i <= count; i++) {
    uint64_t head = v[0];
    if (head - v[1] == 4) continue;
    v[8 + 2 * (head & 3)] = (uint64_t)i;
    v[9 + 2 * (head & 3)] = ~(uint64_t)i;
    v[0] = head + 1;
  }
}
void consume(memory v, int count) {
  for (int i = 0; i < count; i++) {
    uint64_t tail = v[1];
    if (tail == v[0]) continue;
    uint64_t value = v[8 + 2 * (tail & 3)], check = v[9 + 2 * (tail & 3)];
    v[2] = v[2] + (value == ~check ? value : 1 << 20);
    v[1] = tail + 1;
  }
}
// Two threads that each write records and note how many of the other's they see.
void note(memory v, int me, int count) {
  for (int i = 1; i <= count; i++) {
    v[8 * me + 1] = (uint64_t)i;
    v[8 * me] = (uint64_t)i;
    v[8 * me + 2] = v[8 * !me] * 16 + v[8 * !me + 1];
  }
}
