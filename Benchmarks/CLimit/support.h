// Clocks, sockets, histograms and packets that several commands need.

#ifndef SUPPORT_H
#define SUPPORT_H

#include "climit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/// Prints `message` with errno's text and ends the program.
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *message, ...);

// MARK: - Time

static inline int64_t clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

/// Does nothing for so long.
void hold(double seconds);

/// User and system seconds of this process so far.
struct cpu_seconds {
    double user, sys;
};
struct cpu_seconds cpu_used(void);

/// Pages of this process in memory, in bytes.
long resident_bytes(void);

/// Wakes an epoll loop when something is due, as Clamor does: at the due time below 2,000 wake-ups a second, on a
/// grid of 250 µs above.
struct ticker {
    int descriptor;
    bool coarse;
    int64_t armed;
    int64_t window_start;
    int wakes;
};
void ticker_open(struct ticker *ticker, int epoll, uint64_t data);
void ticker_arm(struct ticker *ticker, int64_t due);
/// Takes note that it woke the loop.
void ticker_woke(struct ticker *ticker, int64_t now);

// MARK: - Latencies

/// Log-linear: 2,048 buckets of 1 ns, then 1,024 for each further power of two, up to 10 minutes.
struct histogram {
    uint64_t *counts;
    uint64_t total;
    int64_t highest;
};
enum { HISTOGRAM_SIZE = 31 * 1024 };
void histogram_open(struct histogram *histogram);
/// In microseconds, the middle of its bucket; 0 when it is empty.
double histogram_percentile(const struct histogram *histogram, double percentile);

static inline void histogram_record(struct histogram *histogram, int64_t value, uint64_t count) {
    if (value < 1) value = 1;
    if (value > 600000000000) value = 600000000000;
    int power = 53 - __builtin_clzll((uint64_t)value | 2047);
    histogram->counts[power * 1024 + (value >> power)] += count;
    histogram->total += count;
    if (value > histogram->highest) histogram->highest = value;
}

// MARK: - Sockets

/// As many descriptors as the hard limit allows.
void raise_descriptor_limit(void);

/// A non-blocking listening socket on 127.0.0.1; `*port` 0 becomes the port the kernel chose.
int listen_on(int *port);

/// A non-blocking socket whose connect has begun; `number` chooses its source address.
int begin_connect(const struct options *options, int number);

/// A client that is through CONNACK; waits for it. The socket is non-blocking afterwards.
int connected_client(const struct options *options, const char *role, int number);

/// Sends CONNECT over a link that is open.
void send_connect(int descriptor, const char *role, int number);

/// Asks for `topic` at QoS 0 and waits for SUBACK.
void subscribe(int descriptor, const char *topic);

/// Sends DISCONNECT and FIN to all, and reads each to the server's FIN.
void disconnect_all(const int *descriptors, int count);

// MARK: - Packets, MQTT 3.1.1

static inline uint16_t get_u16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }
static inline uint64_t get_u64(const uint8_t *p) {
    uint64_t value;
    memcpy(&value, p, 8);
    return __builtin_bswap64(value);
}
static inline uint32_t get_u32(const uint8_t *p) {
    uint32_t value;
    memcpy(&value, p, 4);
    return __builtin_bswap32(value);
}
static inline void put_u16(uint8_t *p, unsigned value) {
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}
static inline void put_u32(uint8_t *p, uint32_t value) {
    value = __builtin_bswap32(value);
    memcpy(p, &value, 4);
}
static inline void put_u64(uint8_t *p, uint64_t value) {
    value = __builtin_bswap64(value);
    memcpy(p, &value, 8);
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

/// Writes a CONNECT with an identifier of its own; returns its size. `packet` has room for 64 bytes.
size_t encode_connect(uint8_t *packet, const char *role, int number);

/// A PUBLISH whose packet identifier, sequence and due time are patched for each message.
///
/// The payload begins with the 32 bytes that Clamor's begins with: magic, run, publisher, flags, sequence, due time.
struct publish {
    uint8_t *bytes;
    size_t size;
    size_t id;         // offset of the packet identifier, 0 at QoS 0
    size_t payload;    // offset
};
enum { PAYLOAD_MAGIC = 0x434C4D01, PAYLOAD_HEADER = 32 };

/// Makes `copies` of it, one behind the other.
struct publish encode_publish(const struct options *options, int number, uint32_t run, int copies);

static inline void patch_publish(uint8_t *packet, const struct publish *publish, uint64_t sequence, int64_t due) {
    put_u64(packet + publish->payload + 16, sequence);
    put_u64(packet + publish->payload + 24, (uint64_t)due);
}

#endif
