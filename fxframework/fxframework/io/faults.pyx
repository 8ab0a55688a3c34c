# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""Faults of mapped files: a page that the file has lost is read as zeros, and noted.

Without this, reading it would end the process (SIGBUS).
"""

cdef extern from *:
    """
    
    #if defined(_WIN32)
    /* Windows refuses to shorten a file that is mapped. */
    static int fxf_watch(unsigned long long start, unsigned long long nbytes) { return -1; }
    static int fxf_was_hit(int slot) { return 0; }
    static void fxf_forget(int slot) {}
    #else
    #include <signal.h>
    #include <stdint.h>
    #include <sys/mman.h>
    #include <unistd.h>
    #if !defined(MAP_ANONYMOUS)
    #define MAP_ANONYMOUS MAP_ANON
    #endif
    #define FXF_SLOTS 1024
    
    typedef struct {
        volatile uintptr_t start, stop;  /* start is 0 in a free slot */
        volatile sig_atomic_t hit;
    } fxf_range;
    
    static fxf_range fxf_ranges[FXF_SLOTS];
    static struct sigaction fxf_before;
    static uintptr_t fxf_page;
    
    static void fxf_on_bus_error(int number, siginfo_t *info, void *context) {
        uintptr_t at = (uintptr_t)info->si_addr;
        for (int slot = 0; info->si_code > 0 && slot < FXF_SLOTS; slot++) {
            fxf_range *range = &fxf_ranges[slot];
            if (!range->start || at < range->start || at >= range->stop) continue;
            /* Zeros for all that follows; the instruction that faulted is then repeated. */
            uintptr_t first = at & ~(fxf_page - 1);
            uintptr_t last = (range->stop + fxf_page - 1) & ~(fxf_page - 1);
            range->hit = 1;
            if (mmap((void *)first, last - first, PROT_READ,
                     MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) return;
        }
        if (fxf_before.sa_flags & SA_SIGINFO) {
            fxf_before.sa_sigaction(number, info, context);
        } else if (fxf_before.sa_handler == SIG_DFL || fxf_before.sa_handler == SIG_IGN) {
            sigaction(number, &fxf_before, NULL);
            if (info->si_code <= 0) raise(number);  /* sent by a program: no instruction repeats it */
        } else {
            fxf_before.sa_handler(number);
        }
    }
    
    static int fxf_watch(unsigned long long start, unsigned long long nbytes) {
        if (!fxf_page) {
            struct sigaction ours;
            ours.sa_sigaction = fxf_on_bus_error;
            ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
            sigemptyset(&ours.sa_mask);
            fxf_page = (uintptr_t)sysconf(_SC_PAGESIZE);
            if (sigaction(SIGBUS, &ours, &fxf_before)) {
                fxf_page = 0;
                return -1;
            }
        }
        for (int slot = 0; slot < FXF_SLOTS; slot++) {
            fxf_range *range = &fxf_ranges[slot];
            if (range->start) continue;
            range->hit = 0;
            range->stop = (uintptr_t)(start + nbytes);
            range->start = (uintptr_t)start;
            return slot;
        }
        return -1;
    }
    
    static int fxf_was_hit(int slot) { return slot >= 0 && fxf_ranges[slot].hit; }
    static void fxf_forget(int slot) { if (slot >= 0) fxf_ranges[slot].start = 0; }
    #endif
    """
    int fxf_watch(unsigned long long start, unsigned long long nbytes) noexcept nogil
    int fxf_was_hit(int slot) noexcept nogil
    void fxf_forget(int slot) noexcept nogil


def watch(start, nbytes):
    """Watch ``nbytes`` bytes of mapped memory from address ``start``.

    Return the number for ``was_hit`` and ``forget``; -1 if they cannot be watched: on Windows, and
    beyond 1,024 files.
    """
    return fxf_watch(start, nbytes)


def was_hit(slot):
    """Return whether a page of watched memory could not be read."""
    return bool(fxf_was_hit(slot))


def forget(slot):
    """Stop watching, before the memory is unmapped."""
    fxf_forget(slot)
