// What no program may do, one function each.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void (*function)(void);

void wild_store(void) { *(volatile int *)0x1234 = 1; }
int wild_load(void) { return *(volatile int *)0xdead0000; }
void store_into_code(void) { *(volatile char *)(uintptr_t)&wild_store = 1; }
static char data[16] = {0x90};
void jump_into_data(void) { ((function)(uintptr_t)data)(); __asm__ volatile(""); }
void jump_nowhere(void) { ((function)0x77770000)(); __asm__ volatile(""); }
void endless(void) { for (;;) __asm__ volatile(""); }
void endless_recursion(volatile int *p) { volatile int x[64]; x[0] = 1; endless_recursion(x); (void)p; x[1] = 2; }
void trap(void) { __builtin_trap(); }
void breakpoint(void) { __asm__ volatile("int3"); }
int divide(int a, int b) { return a / b; }
void avx512(void) { __asm__ volatile(".byte 0x62,0xf1,0x7c,0x48,0x58,0xc0"); }  // vaddps %zmm0, %zmm0, %zmm0
void avx2(void) { __asm__ volatile(".byte 0xc5,0xfd,0xfe,0xc0"); }              // vpaddd %ymm0, %ymm0, %ymm0
void draw(void) { __asm__ volatile(".byte 0x48,0x0f,0xc7,0xf0" ::: "rax"); }      // rdrand %rax
void draw_word(void) { __asm__ volatile(".byte 0x66,0x41,0x0f,0xc7,0xf9" ::: "r9"); }  // rdseed %r9w
void privileged(void) { __asm__ volatile("syscall" ::: "rcx", "r11", "memory"); }
void halt(void) { __asm__ volatile("hlt"); }
void call_abort(void) { abort(); }
void fail(int n) { assert(n == 42); }
void free_twice(void) { char *volatile p = malloc(8); free(p); free(p); __asm__ volatile(""); }
void overrun(volatile uint64_t *at, int word) { at[word] = 1; }

__attribute__((noinline)) static void inner(void) { *(volatile int *)8 = 1; __asm__ volatile(""); }
__attribute__((noinline)) static void middle(void) { inner(); __asm__ volatile(""); }
__attribute__((noinline)) void outer(void) { middle(); __asm__ volatile(""); }
