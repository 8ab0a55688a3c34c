#define ALWAYS __attribute__((xray_always_instrument, noinline))
int sink;
namespace ns {
struct A {
  int x;
  ALWAYS int get() const { return x + sink; }
  template <class T, int N> ALWAYS T scaled(T t) { return t + N + x; }
};
}
ALWAYS static void hidden() { sink++; }
ALWAYS int plain(int i) { hidden(); return i + 1; }
__attribute__((xray_log_args(1))) ALWAYS int logged(int i) { return plain(i); }
int main(int argc, char **) {
  ns::A a{argc};
  return a.get() + a.scaled<int, 5>(2) + logged(argc);
}
