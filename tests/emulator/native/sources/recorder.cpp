// A program that LLVM's own flight recorder records; the log goes to the file "log".
// recorder WHAT OPTIONS: which calls it makes, and the recorder's options.
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>
#include <xray/xray_interface.h>
#include <xray/xray_log_interface.h>

#define RECORDED [[clang::xray_always_instrument]] __attribute__((noinline))
#define PLAIN [[clang::xray_never_instrument]] __attribute__((noinline))

static volatile long sink;
PLAIN static void spin(int n) { for (int i = 0; i < n; i++) sink = sink + i; }
PLAIN static void go_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

RECORDED long leaf(long n) { spin(3); return n * 3; }
RECORDED [[clang::xray_log_args(1)]] long keep(long n) { spin(3); return n; }
RECORDED long middle(long n) {
  long sum = 0;
  for (long i = 0; i < n; i++) sum += leaf(i);
  return sum;
}
RECORDED long deep(long n) { return n ? deep(n - 1) + leaf(n) : 0; }
RECORDED long tail(long n) { spin(1); [[clang::musttail]] return leaf(n + 1); }
RECORDED long mover(long n) { go_to(n & 1); [[clang::musttail]] return leaf(n + 1); }
RECORDED void event(const char *text) { __xray_customevent(text, strlen(text)); }
RECORDED void typed(const char *text) { __xray_typedevent(7, text, strlen(text)); }

PLAIN static void calls() {
  sink = keep(5) + middle(4) + deep(6) + tail(2);
  event("hello");
  for (int i = 0; i < 3; i++) { go_to(i & 1); sink = middle(2) + keep(i); }
  for (int i = 0; i < 40; i++) sink = middle(3);
  event("a longer payload of a custom event");
}
PLAIN static void typed_events() { typed("one"); sink = leaf(1); typed("another"); sink = leaf(2); }
PLAIN static void migrations() {
  for (long i = 0; i < 6; i++) sink = keep(i) + mover(i) + keep(100 + i);
}

static int log_file;
PLAIN static void save(const char *, XRayBuffer buffer) {
  if (write(log_file, buffer.Data, buffer.Size) != (ssize_t)buffer.Size) _exit(9);
}

PLAIN int main(int, char **argv) {
  if (__xray_log_select_mode("xray-fdr") != XRAY_REGISTRATION_OK) return 1;
  if (__xray_log_init_mode("xray-fdr", argv[2]) != XRAY_LOG_INITIALIZED) return 2;
  if (__xray_patch() != SUCCESS) return 3;
  if (!strcmp(argv[1], "calls")) calls();
  if (!strcmp(argv[1], "typed")) typed_events();
  if (!strcmp(argv[1], "migrations")) migrations();
  if (__xray_unpatch() != SUCCESS) return 4;
  if (__xray_log_finalize() != XRAY_LOG_FINALIZED) return 5;
  log_file = open("log", O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (__xray_log_process_buffers(save) != XRAY_LOG_FLUSHED) return 6;
  close(log_file);
  return 0;
}
