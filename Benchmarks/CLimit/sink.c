// The servers that clients are measured against: they do the least a server can, so that the client is what costs.
//
// discard: counts what is published.
// ack:     answers QoS 1 with PUBACK and QoS 2 with PUBREC and PUBCOMP, one write for each read.
// fanout:  sends every PUBLISH it reads, as it stands, to every client that has subscribed; one write per subscriber
//          for each read.

#define _GNU_SOURCE
#include "climit.h"
#include "link.h"
#include "support.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum mode { DISCARD, ACK, FANOUT };

struct peer {
    int descriptor;
    bool v5;
    bool subscribed;
    uint64_t skip;     // bytes of a packet's end that need not be looked at
    uint8_t *carry;    // the front of a packet that a read cut
    uint32_t carried;
};

enum { READ_SIZE = 256 * 1024, CARRY_LIMIT = 64 * 1024, DESCRIPTORS = 1 << 20 };
/// epoll data of what is no peer: above every descriptor.
enum { ON_LISTENER = DESCRIPTORS, ON_STDIN, ON_SIGNAL };

static enum mode mode;
static struct peer **peers;               // by descriptor
static int *subscribers;                  // descriptors
static int subscriber_count, subscriber_room;
// A carried front stands before what is read next.
static uint8_t input[CARRY_LIMIT + READ_SIZE];
// An answer is never longer than the packet it answers, but for CONNACK and SUBACK by a few bytes.
static uint8_t answer[2 * sizeof input];
static size_t answered;
static uint8_t forward[sizeof input];     // fanout: the PUBLISH packets of this read
static size_t forwarded;

static struct {
    uint64_t connections, live, connects, subscriptions;
    uint64_t publishes[3], publish_bytes, releases, answers, delivered;
    uint64_t reads, errors;
} counts;

static void drop(struct peer *peer) {
    for (int i = 0; i < subscriber_count; i++) {
        if (subscribers[i] == peer->descriptor) subscribers[i--] = subscribers[--subscriber_count];
    }
    peers[peer->descriptor] = NULL;
    link_close(peer->descriptor);
    free(peer->carry);
    free(peer);
    counts.live--;
}

/// Writes all of it, waiting for the peer where its socket is full.
static bool write_all(int descriptor, const uint8_t *bytes, size_t length) {
    while (length > 0) {
        ssize_t n = link_send(descriptor, bytes, length);
        if (n >= 0) {
            bytes += n;
            length -= (size_t)n;
        } else if (errno == EAGAIN) {
            struct pollfd wait = {.fd = descriptor, .events = POLLOUT};
            poll(&wait, 1, -1);
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

static void answer_with(const uint8_t *bytes, size_t length) {
    memcpy(answer + answered, bytes, length);
    answered += length;
}

static void answer_packet_id(uint8_t first, const uint8_t *packet_id) {
    uint8_t packet[4] = {first, 2, packet_id[0], packet_id[1]};
    answer_with(packet, 4);
    counts.answers++;
}

static void on_connect(struct peer *peer, const uint8_t *body, uint32_t length) {
    counts.connects++;
    peer->v5 = length > 6 && body[6] == 5;
    if (peer->v5) {
        answer_with((const uint8_t[]){0x20, 3, 0, 0, 0}, 5);
    } else {
        answer_with((const uint8_t[]){0x20, 2, 0, 0}, 4);
    }
}

/// Grants every filter QoS 0: fan-out sends nothing above it.
static void on_subscribe(struct peer *peer, const uint8_t *body, uint32_t length, bool subscribe) {
    uint32_t at = 2, filters = 0;
    if (peer->v5) at += 1 + body[2];  // the clients measured here send fewer than 128 bytes of properties
    while (at + 2 <= length) {
        at += 2u + get_u16(body + at) + (subscribe ? 1 : 0);
        filters++;
    }
    if (filters > 100) filters = 100;
    uint32_t codes = subscribe || peer->v5 ? filters : 0;
    uint8_t packet[128] = {subscribe ? 0x90 : 0xB0, (uint8_t)(2 + (peer->v5 ? 1 : 0) + codes), body[0], body[1]};
    answer_with(packet, 2u + packet[1]);
    if (subscribe && !peer->subscribed) {
        peer->subscribed = true;
        if (subscriber_count == subscriber_room) {
            subscriber_room = subscriber_room ? 2 * subscriber_room : 1024;
            subscribers = realloc(subscribers, (size_t)subscriber_room * sizeof *subscribers);
        }
        subscribers[subscriber_count++] = peer->descriptor;
        counts.subscriptions++;
    }
}

/// Takes the packets of `bytes`. Returns how many bytes belong to whole packets, or to ones whose rest is skipped; -1 for
/// what is no MQTT.
static ssize_t take(struct peer *peer, const uint8_t *bytes, size_t length) {
    size_t at = 0;
    if (peer->skip) {
        size_t n = peer->skip < length ? (size_t)peer->skip : length;
        peer->skip -= n;
        at = n;
    }
    while (at < length) {
        const uint8_t *packet = bytes + at;
        size_t available = length - at;
        uint32_t remaining;
        int header = fixed_header(packet, available, &remaining);
        if (header < 0) return -1;
        if (header == 0) break;
        const uint8_t *body = packet + header;
        size_t whole = (size_t)header + remaining;
        uint8_t type = packet[0] >> 4;

        if (type == 3) {
            unsigned qos = packet[0] >> 1 & 3;
            if (qos == 3) return -1;
            if (mode == FANOUT) {
                if (available < whole) break;
                memcpy(forward + forwarded, packet, whole);
                forwarded += whole;
            } else if (mode == ACK && qos > 0) {
                // Nothing behind the packet identifier matters, but an answer before the last byte would be a lie.
                if (available < whole) break;
                uint32_t topic = get_u16(body);
                if (topic + 4 > remaining) return -1;
                answer_packet_id(qos == 1 ? 0x40 : 0x50, body + 2 + topic);
            }
            counts.publishes[qos]++;
            counts.publish_bytes += whole;
            if (available < whole) {
                peer->skip = whole - available;
                return (ssize_t)length;
            }
        } else {
            if (available < whole) break;
            switch (type) {
            case 1: on_connect(peer, body, remaining); break;
            case 6:
                if (remaining < 2) return -1;
                counts.releases++;
                answer_packet_id(0x70, body);
                break;
            case 8:
            case 10:
                if (remaining < 5) return -1;
                on_subscribe(peer, body, remaining, type == 8);
                break;
            case 12: answer_with((const uint8_t[]){0xD0, 0}, 2); break;
            case 4:
            case 5:
            case 7:
            case 14: break;
            default: return -1;
            }
        }
        at += whole;
    }
    return (ssize_t)at;
}

static void on_readable(struct peer *peer) {
    size_t carried = peer->carried;
    ssize_t n = link_recv(peer->descriptor, input + CARRY_LIMIT, READ_SIZE);
    if (n <= 0) {
        if (n < 0 && errno == EAGAIN) return;
        if (n < 0) counts.errors++;
        drop(peer);
        return;
    }
    counts.reads++;
    uint8_t *start = input + CARRY_LIMIT - carried;
    if (carried) {
        memcpy(start, peer->carry, carried);
        peer->carried = 0;
    }
    answered = forwarded = 0;
    size_t length = carried + (size_t)n;
    ssize_t taken = take(peer, start, length);
    size_t left = taken < 0 ? 0 : length - (size_t)taken;
    if (taken < 0 || left > CARRY_LIMIT) {
        counts.errors++;
        drop(peer);
        return;
    }
    if (left) {
        peer->carry = realloc(peer->carry, left);
        memcpy(peer->carry, start + taken, left);
        peer->carried = (uint32_t)left;
    }
    if (answered && !write_all(peer->descriptor, answer, answered)) {
        counts.errors++;
        drop(peer);
    }
    if (forwarded) {
        // Each reads the same packets; a peer that is gone is dropped when its own event says so.
        uint64_t packets = 0;
        for (size_t at = 0; at < forwarded; packets++) {
            uint32_t remaining = 0;
            int header = fixed_header(forward + at, forwarded - at, &remaining);
            at += (size_t)header + remaining;
        }
        for (int i = 0; i < subscriber_count; i++) {
            if (write_all(subscribers[i], forward, forwarded)) counts.delivered += packets;
        }
    }
}

static void accept_all(int listener, int epoll) {
    for (;;) {
        int descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (descriptor < 0) {
            if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
            fail("accept with %llu clients", (unsigned long long)counts.live);
        }
        struct peer *peer = calloc(1, sizeof *peer);
        peer->descriptor = descriptor;
        peers[descriptor] = peer;
        link_accepted(descriptor);
        counts.connections++;
        counts.live++;
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)descriptor};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) < 0) fail("epoll_ctl");
    }
}

static void print_counts(const char *name, int64_t started) {
    struct cpu_seconds cpu = cpu_used();
    printf("{\"sink\":\"%s\",\"connections\":%llu,\"live\":%llu,\"connects\":%llu,\"subscriptions\":%llu,\"publishes\":[%llu,%llu,%llu],"
           "\"publish_bytes\":%llu,\"releases\":%llu,\"answers\":%llu,\"delivered\":%llu,\"reads\":%llu,\"errors\":%llu,"
           "\"cpu_user_s\":%.6f,\"cpu_sys_s\":%.6f,\"wall_s\":%.6f}\n",
           name, (unsigned long long)counts.connections, (unsigned long long)counts.live,
           (unsigned long long)counts.connects, (unsigned long long)counts.subscriptions, (unsigned long long)counts.publishes[0],
           (unsigned long long)counts.publishes[1], (unsigned long long)counts.publishes[2],
           (unsigned long long)counts.publish_bytes, (unsigned long long)counts.releases,
           (unsigned long long)counts.answers, (unsigned long long)counts.delivered,
           (unsigned long long)counts.reads, (unsigned long long)counts.errors, cpu.user, cpu.sys,
           (double)(now_ns() - started) / 1e9);
    fflush(stdout);
}

int run_sink(const struct options *options) {
    if (!strcmp(options->mode, "discard")) mode = DISCARD;
    else if (!strcmp(options->mode, "ack")) mode = ACK;
    else if (!strcmp(options->mode, "fanout")) mode = FANOUT;
    else fail("--mode is discard, ack or fanout, not %s", options->mode);

    raise_descriptor_limit();
    link_serve(options);
    peers = calloc(DESCRIPTORS, sizeof *peers);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int port = options->port;
    int listener = listen_on(&port);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = ON_LISTENER};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);

    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGUSR1);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    int signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    event = (struct epoll_event){.events = EPOLLIN, .data.u32 = ON_SIGNAL};
    epoll_ctl(epoll, EPOLL_CTL_ADD, signals, &event);
    // Fails where stdin is a file or /dev/null, which never ends this program.
    event = (struct epoll_event){.events = EPOLLIN, .data.u32 = ON_STDIN};
    epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &event);

    printf("port %d\n", port);
    fflush(stdout);

    int64_t started = now_ns();
    for (;;) {
        struct epoll_event events[1024];
        int n = epoll_wait(epoll, events, 1024, -1);
        for (int i = 0; i < n; i++) {
            uint32_t from = events[i].data.u32;
            if (from == ON_LISTENER) {
                accept_all(listener, epoll);
            } else if (from == ON_SIGNAL) {
                struct signalfd_siginfo info;
                if (read(signals, &info, sizeof info) != sizeof info) continue;
                // SIGUSR1 asks for the counts so far.
                print_counts(options->mode, started);
                if (info.ssi_signo != SIGUSR1) return 0;
            } else if (from == ON_STDIN) {
                char byte;
                if (read(STDIN_FILENO, &byte, 1) == 0) {
                    print_counts(options->mode, started);
                    return 0;
                }
            } else if (peers[from]) {
                do on_readable(peers[from]);
                while (link_has_more && peers[from]);
            }
        }
    }
}
