// Clocks, sockets and packets that every command needs.

#ifndef SUPPORT_H
#define SUPPORT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

/// Prints `message` with errno's text and ends the program.
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *message, ...);

static inline int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/// User and system seconds of this process so far.
struct cpu_seconds {
    double user, sys;
};
struct cpu_seconds cpu_used(void);

/// As many descriptors as the hard limit allows.
void raise_descriptor_limit(void);

/// A non-blocking listening socket on 127.0.0.1; `*port` 0 becomes the port the kernel chose.
int listen_on(int *port);

static inline uint16_t get_u16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }
static inline void put_u16(uint8_t *p, unsigned value) {
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

/// Reads the fixed header at `p`. Returns its length, 0 while bytes are missing, -1 when the length runs past 4 bytes.
static inline int fixed_header(const uint8_t *p, size_t available, uint32_t *remaining) {
    uint32_t value = 0;
    for (int i = 1; i <= 4; i++) {
        if ((size_t)i >= available) return 0;
        value |= (uint32_t)(p[i] & 0x7F) << (7 * (i - 1));
        if (!(p[i] & 0x80)) {
            *remaining = value;
            return i + 1;
        }
    }
    return -1;
}

#endif
