// Profiling mode: do the ticks of a call include those of what it calls? A leaf takes a second, mid 0.2 s more.
// clang++-19 -O1 -fxray-instrument -fxray-modes=xray-profiling seconds.cpp -lpthread
#include <thread>
#include <unistd.h>
#include <xray/xray_interface.h>
#include <xray/xray_log_interface.h>

#define TRACED [[clang::xray_always_instrument]] __attribute__((noinline))
volatile unsigned long sink;
TRACED void leaf() { usleep(1000000); sink = sink + 1; }
TRACED void mid() { leaf(); usleep(200000); sink = sink + 1; }
TRACED void outer() { mid(); mid(); sink = sink + 1; }

int main() {
  __xray_log_select_mode("xray-profiling");
  __xray_log_init_mode("xray-profiling", "no_flush=false");
  __xray_patch();
  outer();
  std::thread other([] { leaf(); });
  other.join();
  leaf();
  __xray_unpatch();
  __xray_log_finalize();
  return __xray_log_flushLog() == XRAY_LOG_FLUSHED ? 0 : 1;
}
