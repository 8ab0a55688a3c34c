// What a writer of telemetry asks of Zircon.
#include <stdint.h>

typedef int32_t status;
typedef uint32_t handle;

int64_t zx_clock_get_monotonic(void);
int64_t zx_clock_get_boot(void);
int64_t zx_ticks_get(void);
int64_t zx_ticks_per_second(void);
status zx_vmo_create(uint64_t size, uint32_t options, handle *out);
status zx_vmo_read(handle, void *, uint64_t offset, uint64_t size);
status zx_vmo_write(handle, const void *, uint64_t offset, uint64_t size);
status zx_vmo_get_size(handle, uint64_t *);
status zx_vmo_set_size(handle, uint64_t);
status zx_vmo_op_range(handle, uint32_t, uint64_t, uint64_t, void *, uint64_t);
handle zx_vmar_root_self(void);
status zx_vmar_map(handle, uint32_t, uint64_t, handle, uint64_t, uint64_t, uint64_t *);
status zx_vmar_unmap(handle, uint64_t, uint64_t);
status zx_object_get_info(handle, uint32_t, void *, uint64_t, uint64_t *, uint64_t *);
status zx_object_set_property(handle, uint32_t, const void *, uint64_t);
status zx_handle_close(handle);
status zx_handle_duplicate(handle, uint32_t, handle *);
status zx_socket_write(handle, uint32_t, const void *, uint64_t, uint64_t *);
status zx_nanosleep(int64_t);
int64_t zx_deadline_after(int64_t);
void zx_cprng_draw(void *, uint64_t);
handle zx_thread_self(void);
handle zx_process_self(void);
void zx_thread_exit(void);

void clocks(int64_t *out) {
  out[0] = zx_clock_get_monotonic();
  out[1] = zx_clock_get_boot();
  out[2] = zx_ticks_get();
  out[3] = zx_ticks_per_second();
}

int make(uint32_t *out) {
  handle vmo;
  if (zx_vmo_create(5000, 2, &vmo)) return 1;
  uint64_t size, word = 0x1122334455667788, back = 0, address;
  if (zx_vmo_get_size(vmo, &size) || size != 8192) return 2;
  if (zx_vmo_write(vmo, &word, 8, 8)) return 3;
  if (zx_vmo_read(vmo, &back, 8, 8) || back != word) return 4;
  if (zx_vmar_map(zx_vmar_root_self(), 3, 0, vmo, 4096, 4096, &address)) return 5;
  *(volatile uint64_t *)address = 99;
  if (zx_vmo_read(vmo, &back, 4096, 8) || back != 99) return 6;
  if (zx_vmo_op_range(vmo, 10, 4096, 8, 0, 0) || *(volatile uint64_t *)address) return 7;
  if (zx_vmo_set_size(vmo, 3 * 4096)) return 8;
  if (zx_vmo_set_size(vmo, (uint64_t)1 << 62) != -14) return 9;
  if (zx_vmo_read(vmo, &back, 3 * 4096, 1) != -14) return 10;
  if (zx_vmo_write(vmo + 400, &word, 0, 8) != -11) return 11;
  if (zx_vmo_get_size(zx_thread_self(), &size) != -12) return 12;
  if (zx_vmar_map(zx_vmar_root_self(), 3, 0, vmo, 1, 4096, &address) != -10) return 13;
  handle other;
  if (zx_handle_duplicate(vmo, 1 << 2 | 1 << 5, &other)) return 14;
  if (zx_vmo_write(other, &word, 0, 8) != -30) return 15;
  if (zx_handle_close(other) || zx_handle_close(other) != -11) return 16;
  if (zx_object_set_property(vmo, 3, "mine", 5)) return 17;
  if (zx_vmo_create(1, 8, &other) != -10) return 18;
  *out = vmo;
  return 0;
}

int fixed_size(handle vmo) { return zx_vmo_set_size(vmo, 8192); }

int pthread_key_create(uint32_t *, void (*)(void *));
int pthread_setspecific(uint32_t, const void *);
void *pthread_getspecific(uint32_t);

// Count the threads that have no value of the key 1, or of a new one.
void claims(volatile uint64_t *out, int at) {
  uint32_t fresh;
  pthread_key_create(&fresh, 0);
  out[at] = fresh + 100 * !pthread_getspecific(1) + 1000 * !pthread_getspecific(fresh);
  pthread_setspecific(1, "mine");
}

void draws(volatile uint64_t *out, int at) {
  uint64_t drawn;
  zx_cprng_draw(&drawn, sizeof(drawn));
  out[at] = drawn;
}

int koids(uint64_t *out, handle vmo) {
  uint64_t info[4], actual;
  handle handles[] = {vmo, zx_thread_self(), zx_process_self()};
  for (int i = 0; i < 3; i++) {
    if (zx_object_get_info(handles[i], 2, info, sizeof info, &actual, 0) || actual != 1) return 1 + i;
    out[2 * i] = info[0];
    out[2 * i + 1] = info[1] >> 32;
  }
  return zx_object_get_info(vmo, 2, info, 8, 0, 0) == -15 ? 0 : 9;
}

int send(handle socket, const char *data, uint64_t size) {
  uint64_t actual = 0;
  status done = zx_socket_write(socket, 0, data, size, &actual);
  return done ? done : (int)actual;
}

void sleeper(int64_t *out, int64_t ns) {
  out[0] = zx_clock_get_monotonic();
  zx_nanosleep(zx_deadline_after(ns));
  out[1] = zx_clock_get_monotonic();
  zx_thread_exit();
  out[2] = 1;
}

static volatile uint64_t shared;
void racer(volatile uint64_t *out, int me, int times) {
  for (int i = 0; i < times; i++) shared = shared + 1;
  out[me] = shared;
}

void *malloc(uint64_t);
void free(void *);
handle zx_thread_self(void);
void allocates(volatile uint64_t *out, int me) {
  uint64_t info[4];
  volatile uint64_t *block = malloc(64);
  block[0] = shared + 1;
  block[7] = block[0];
  shared = block[7];
  zx_object_get_info(zx_thread_self(), 2, info, sizeof info, 0, 0);
  out[1 + me] = info[0];
  out[0] = shared;
  free((void *)block);
}

static volatile int busy;
void careful(volatile uint64_t *out) {
  if (busy) { out[3]++; return; }
  busy = 1;
  uint64_t n = out[0];
  out[0] = n + 1;
  out[1] = n + 1;
  busy = 0;
}
void careless(volatile uint64_t *out) {
  uint64_t n = out[0];
  out[0] = n + 1;
  out[1] = n + 1;
}
