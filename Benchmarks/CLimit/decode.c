// Decoding PUBLISH packets of 88 bytes (20 of topic, 64 of payload) in memory, cut in one of three ways.

#include "decoder.h"

#include <stdio.h>

/// Stays in the second-level cache, as what was just read from a socket does.
enum { PACKETS = 4096, STREAM = PACKETS * 88 };

/// A round is so many walks of the stream: a look at the clock is a system call.
enum { WALKS = 64, ROUNDS = 100000 };

bool topic_is_legal(const uint8_t *topic, uint32_t size) {
    if (size == 0) return false;
    for (uint32_t at = 0; at < size;) {
        uint8_t byte = topic[at];
        if (byte == 0 || byte == '+' || byte == '#') return false;
        uint32_t length = byte < 0x80 ? 1 : byte < 0xC2 ? 0 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : byte < 0xF5 ? 4 : 0;
        if (length == 0 || at + length > size) return false;
        // The first continuation byte decides about overlong forms, surrogates and code points past U+10FFFF.
        if (length > 1) {
            uint8_t low = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
            uint8_t high = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
            if (topic[at + 1] < low || topic[at + 1] > high) return false;
        }
        for (uint32_t i = 2; i < length; i++)
            if ((topic[at + i] & 0xC0) != 0x80) return false;
        at += length;
    }
    return true;
}

/// Adds up what it is given, so that nothing can be left out.
static void add_up(void *context, const struct message *message) {
    *(uint64_t *)context += message->topic_size + message->payload_size + message->topic[message->topic_size - 1];
}

/// Ends of the pieces that the stream is cut into.
static uint32_t *cut(const char *form, size_t *count) {
    uint32_t *ends = malloc((STREAM + 1) * sizeof *ends);
    uint64_t random = 0x9E3779B97F4A7C15;
    *count = 0;
    for (uint32_t at = 0; at < STREAM;) {
        if (!strcmp(form, "contiguous")) {
            at += 65536;
        } else if (!strcmp(form, "segments")) {
            at += 1460;
        } else if (!strcmp(form, "fragments")) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            at += 1 + (uint32_t)(random >> 32) % 7;
        } else {
            fail("--mode is contiguous, segments or fragments, not %s", form);
        }
        ends[(*count)++] = at < STREAM ? at : STREAM;
    }
    return ends;
}

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

__attribute__((always_inline)) static inline double nanoseconds_per_packet(
    const uint8_t *stream, const uint32_t *ends, size_t pieces, double seconds, bool checks_topic, uint64_t *packets) {
    struct decoder decoder = {0};
    uint64_t sum = 0;
    int64_t start = clock_ns(CLOCK_PROCESS_CPUTIME_ID), last = start;
    static int64_t took[ROUNDS];
    size_t count = 0;
    // The first round warms the caches and is not counted.
    for (bool warm = false; count == 0 || (count < ROUNDS && (double)(last - start) < seconds * 1e9); warm = true) {
        for (int walk = 0; walk < WALKS; walk++) {
            uint32_t from = 0;
            for (size_t i = 0; i < pieces; i++) {
                if (!decode(&decoder, stream + from, ends[i] - from, false, checks_topic, add_up, &sum))
                    fail("the decoder refused its own stream");
                from = ends[i];
            }
        }
        int64_t now = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        if (warm) took[count++] = now - last;
        last = now;
    }
    if (decoder.packets % (PACKETS) != 0 || sum == 0) fail("the decoder lost packets");
    *packets += decoder.packets;
    // The middle one: a neighbour that takes the core for a while makes single rounds longer, and none shorter.
    qsort(took, count, sizeof *took, compare);
    return (double)took[count / 2] / ((double)PACKETS * WALKS);
}

int run_decode(const struct options *options) {
    struct options publish_options = {.topic = "limits/decode/topic", .size = 64};
    struct publish publish = encode_publish(&publish_options, 1, 1, PACKETS);
    if (publish.size != 88) fail("the packet has %zu bytes", publish.size);
    size_t pieces;
    uint32_t *ends = cut(options->mode, &pieces);

    uint64_t packets = 0;
    double parse = nanoseconds_per_packet(publish.bytes, ends, pieces, options->seconds / 2, false, &packets);
    double checked = nanoseconds_per_packet(publish.bytes, ends, pieces, options->seconds / 2, true, &packets);
    struct cpu_seconds cpu = cpu_used();
    printf("{\"command\":\"decode\",\"form\":\"%s\",\"messages\":%llu,\"user_s\":%.6f,\"sys_s\":%.6f,"
           "\"parse_only_ns\":%.4f,\"checked_ns\":%.4f}\n",
           options->mode, (unsigned long long)packets, cpu.user, cpu.sys, parse, checked);
    return 0;
}
