// What kernels built with a newer clang ask of a runtime, and the one that atheris brings does not have.
#include <string.h>

void *__sanitizer_internal_memcpy(void *to, const void *from, size_t size) { return memcpy(to, from, size); }
void *__sanitizer_internal_memmove(void *to, const void *from, size_t size) { return memmove(to, from, size); }
void *__sanitizer_internal_memset(void *to, int value, size_t size) { return memset(to, value, size); }
