// What features.c calls, for an executable that has no libc.
#include <stddef.h>

int tiny_libc;
size_t strlen(const char *s) { size_t n = 0; while (s[n]) n++; return n; }
void *memcpy(void *to, const void *from, size_t n) {
  char *t = to; const char *f = from;
  while (n--) *t++ = *f++;
  return to;
}
void *memmove(void *to, const void *from, size_t n) {
  char *t = to; const char *f = from;
  if (t < f) { while (n--) *t++ = *f++; } else { while (n--) t[n] = f[n]; }
  return to;
}
void *memset(void *to, int byte, size_t n) { char *t = to; while (n--) *t++ = (char)byte; return to; }
int snprintf(char *out, size_t n, const char *f, ...) { (void)out; (void)n; (void)f; return 0; }
void *malloc(size_t n) { (void)n; return 0; }
void *calloc(size_t n, size_t m) { (void)n; (void)m; return 0; }
void *realloc(void *p, size_t n) { (void)p; (void)n; return 0; }
void free(void *p) { (void)p; }
