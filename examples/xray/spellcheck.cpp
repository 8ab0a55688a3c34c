// Looks every word of a text up in a dictionary, with a thread for each part of the text, and finds
// what else may have been meant. Records itself with XRay's flight data recorder; README.md has the
// commands.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>
#include <xray/xray_interface.h>
#include <xray/xray_log_interface.h>

// With a high -fxray-instruction-threshold, what asks for it is instrumented, and nothing else.
#define TRACED [[clang::xray_always_instrument, gnu::noinline]]
#define UNTRACED [[clang::xray_never_instrument]]

// The runtime's entry for an event of one's own: __xray_customevent, the builtin, crashes with -O1
// and -O2 in clang 14 to 19.
extern "C" void __xray_CustomEvent(const void *data, size_t size);

const char *const TEXT[] = {
    "the flight recorder kepes the last buffers of every thread and writes them when the program asks",
    "a call that takes less then the threshold leaves no trace at all so the log shows what matters",
    "when a thread moves to another procesor the recorder notes the new counter before it goes on",
};
const char *const DICTIONARY[] = {
    "a", "all", "and", "another", "asks", "at", "before", "buffers", "call", "counter", "every",
    "flight", "goes", "it", "keeps", "last", "leaves", "less", "log", "matters", "moves", "new", "no",
    "notes", "of", "on", "processor", "program", "recorder", "shows", "so", "takes", "than", "that",
    "the", "them", "thread", "threshold", "to", "trace", "what", "when", "writes",
};

// Makes each space an end, and gives where the words begin.
TRACED std::vector<const char *> split(char *text) {
  std::vector<const char *> words;
  for (char *rest = text; *rest; rest++) {
    if (rest == text || !rest[-1]) words.push_back(rest);
    if (*rest == ' ') *rest = 0;
  }
  return words;
}

// How many letters must be changed, added or left out: by its definition, so slow and deep.
TRACED int distance(const char *one, const char *other, int limit) {
  if (!*one || !*other || !limit) {
    int left = 0;
    for (const char *rest = *one ? one : other; *rest; rest++) left++;
    return std::min(left, limit);
  }
  if (*one == *other) return distance(one + 1, other + 1, limit);
  int best = distance(one + 1, other + 1, limit - 1);
  best = std::min(best, distance(one + 1, other, limit - 1));
  best = std::min(best, distance(one, other + 1, limit - 1));
  return std::min(best + 1, limit);
}

TRACED bool known(const char *word) {
  return std::binary_search(std::begin(DICTIONARY), std::end(DICTIONARY), std::string_view(word));
}

TRACED const char *suggest(const char *word) {
  const char *best = "nothing like it";
  int least = 4;
  for (const char *entry : DICTIONARY) {
    int found = distance(word, entry, least);
    if (found < least) {
      least = found;
      best = entry;
    }
  }
  return best;
}

// Its argument is in the log.
TRACED [[clang::xray_log_args(1)]] void check(long part) {
  std::string text = TEXT[part];
  for (const char *word : split(text.data())) {
    if (known(word)) continue;
    std::string line = std::string(word) + ": " + suggest(word);
    __xray_CustomEvent(line.data(), line.size());
  }
}

UNTRACED int main(int argc, char **argv) {
  const char *options = argc > 1 ? argv[1] : "func_duration_threshold_us=2";
  if (__xray_log_select_mode("xray-fdr") != XRAY_REGISTRATION_OK ||
      __xray_log_init_mode("xray-fdr", options) != XRAY_LOG_INITIALIZED) {
    std::fputs("there is no flight data recorder in this program\n", stderr);
    return 1;
  }
  __xray_patch();
  std::vector<std::thread> threads;
  for (long part = 0; part < 3; part++) threads.emplace_back(check, part);
  for (std::thread &thread : threads) thread.join();
  __xray_log_finalize();
  __xray_log_flushLog();
  return 0;
}
