#include <stdint.h>

void append(volatile uint64_t *log, uint64_t value) {
  uint64_t count = log[0];
  log[0] = count + 1;
  log[1 + count] = value;
}
