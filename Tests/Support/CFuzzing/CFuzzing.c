#define _GNU_SOURCE
#include "CFuzzing.h"
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

size_t clamor_heap_bytes(void) {
#if defined(__GLIBC__)
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
#else
    return 0;
#endif
}

void *clamor_guarded_memory_end(size_t pages) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + pages * page, page, PROT_NONE) != 0) { return NULL; }
    return memory + pages * page;
}

// Tests feed several targets side by side, and a signal comes to the thread whose input it was.
static _Thread_local const unsigned char *input_bytes;
static _Thread_local size_t input_count;

// Async-signal-safe: write(2) and nothing else.
static void report(int number) {
    static const char digits[] = "0123456789abcdef";
    static const char head[] = "\nThe input at hand, as hex:\n";
    char line[128];
    size_t used = 0;
    ssize_t ignored = write(2, head, sizeof head - 1);
    for (size_t index = 0; index < input_count; index++) {
        line[used++] = digits[input_bytes[index] >> 4];
        line[used++] = digits[input_bytes[index] & 15];
        if (used == sizeof line) {
            ignored = write(2, line, used);
            used = 0;
        }
    }
    line[used++ % sizeof line] = '\n';
    ignored = write(2, line, used);
    (void)ignored;
    signal(number, SIG_DFL);
    raise(number);
}

void clamor_report_input_on_crash(void) {
    static const int numbers[] = {SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGPROF};
    // A stack that has run out needs another one to say so.
    static char alternate[65536];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, NULL);
    for (size_t index = 0; index < sizeof numbers / sizeof *numbers; index++) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_handler = report;
        action.sa_flags = SA_ONSTACK;
        sigaction(numbers[index], &action, NULL);
    }
}

// Of this thread's own time, so that a busy machine, a stopped process or another test is no endless loop.
static void be_patient(uint32_t seconds) {
#if defined(__linux__)
    static _Thread_local timer_t timer;
    static _Thread_local int has_timer;
    if (!has_timer) {
        struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
        event._sigev_un._tid = gettid();
        if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0) { return; }
        has_timer = 1;
    }
    struct itimerspec patience = {.it_value = {.tv_sec = seconds}};
    timer_settime(timer, 0, &patience, NULL);
#endif
}

void clamor_input_begins(const void *bytes, size_t count, uint32_t seconds) {
    input_bytes = bytes;
    input_count = count;
    if (seconds > 0) { be_patient(seconds); }
}

void clamor_inputs_end(void) {
    be_patient(0);
    input_count = 0;
}

size_t clamor_peak_memory(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
#if defined(__APPLE__)
    return (size_t)usage.ru_maxrss / 1024;
#else
    return (size_t)usage.ru_maxrss;
#endif
}

uint64_t clamor_processor_time(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000
        + (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}
