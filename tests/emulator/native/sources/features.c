// What compilers and linkers make of C: the loader is to bring all of it to life.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

typedef int (*operation)(int, int);

static int plus(int a, int b) { return a + b; }
static int minus(int a, int b) { return a - b; }
static operation operations[] = {plus, minus};

static int started;
__attribute__((constructor)) static void start(void) { started = 42; }
int has_started(void) { return started; }

int calculate(int which, int a, int b) { return operations[which](a, b); }

static __thread int counter = 7;
__thread int wide[4];
int count(void) { wide[1]++; return counter++ + 10 * wide[1]; }

static int fast(void) { return 11; }
static operation choose(void) { return (operation)fast; }
int chosen(void) __attribute__((ifunc("choose")));
int call_chosen(void) { return chosen() + 1; }

const char *const words[] = {"zero", "one", "two"};
int length(int which) { return (int)strlen(words[which]); }

int common_value;
int *address_of_common(void) { return &common_value; }

uint64_t ticks(void) { return __rdtsc(); }
uint64_t ticks_and_cpu(uint64_t *out) {
  unsigned aux;
  out[0] = __rdtscp(&aux);
  return aux;
}
unsigned cpu_number(void) {
  uint64_t value;
  __asm__ volatile(".byte 0xf3, 0x0f, 0xc7, 0xf8" : "=a"(value));  // rdpid %rax
  return (unsigned)value;
}

int many(int a, int b, int c, int d, int e, int f, int g, int h) {
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

int format(char *out, size_t size) {
  return snprintf(out, size, "%s %d %05u %#x %lld %-4s| %c %% %.*s %zu %8.3d %+d", "text", -5, 42u, 255u,
                  -9000000000ll, "ab", 'q', 2, "xyz", (size_t)77, 6, 3);
}

long heap(long n) {
  long *numbers = malloc((size_t)n * sizeof *numbers);
  for (long i = 0; i < n; i++) numbers[i] = i;
  numbers = realloc(numbers, 2 * (size_t)n * sizeof *numbers);
  long *zeros = calloc((size_t)n, sizeof *zeros);
  long sum = 0;
  for (long i = 0; i < n; i++) sum += numbers[i] + zeros[i];
  free(numbers);
  free(zeros);
  return sum;
}

void copy(char *to, const char *from, size_t n) { memcpy(to, from, n); }
void move(char *to, const char *from, size_t n) { memmove(to, from, n); }
void fill(char *to, int byte, size_t n) { memset(to, byte, n); }

double half(void) { volatile double x = 3; x = x / 2; return x; }
int halved(void) { return (int)(half() * 10); }
