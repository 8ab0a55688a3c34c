// An executable without libc.
int has_started(void);
void _start(void) { has_started(); for (;;) {} }
