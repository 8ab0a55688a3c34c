// What C++ needs of its runtime: constructors, virtual functions, statics, new and delete.
#include <atomic>
#include <cstdint>
#include <new>

struct Sink {
  virtual ~Sink() = default;
  virtual void put(uint64_t value) = 0;
};

class MemorySink : public Sink {
 public:
  explicit MemorySink(std::atomic<uint64_t> *log) : log_(log) {}
  void put(uint64_t value) override {
    uint64_t count = log_[0].load(std::memory_order_relaxed);
    log_[1 + count].store(value, std::memory_order_relaxed);
    log_[0].store(count + 1, std::memory_order_release);
  }

 private:
  std::atomic<uint64_t> *log_;
};

struct Started {
  int number;
  Started() : number(41) { number++; }
};
static Started started;

static int next() {
  static Started local;
  return local.number++;
}

template <typename Number> static Number twice(Number n) { return n + n; }

extern "C" int numbers() { return started.number + twice(next()) + next(); }

extern "C" void fill(std::atomic<uint64_t> *log, int count) {
  Sink *sink = new MemorySink(log);
  for (int n = 1; n <= count; n++) sink->put(static_cast<uint64_t>(n));
  delete sink;
}
