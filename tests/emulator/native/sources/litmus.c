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
