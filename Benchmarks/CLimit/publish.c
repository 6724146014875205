// Publishers: QoS 0 in closed loop (so many messages a write) or open loop (each message due at its own time),
// QoS 1 and 2 with a window.

#define _GNU_SOURCE
#include "climit.h"
#include "link.h"
#include "support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RING = 128, ON_TICK = -1 };

struct client {
    int descriptor;
    struct publish publish;
    uint64_t sequence;
    uint64_t due_count;         // open loop: how many of its messages are due by now
    int64_t able_since;         // closed loop: when it could send what it sends next
    uint8_t *rest;              // what the socket did not take
    size_t rest_size, rest_sent;
    uint16_t next_id;
    int in_flight;
    int64_t sent_at[RING];      // by packet identifier
    uint8_t cut[4];             // the front of an acknowledgement that a read cut
    int cut_size;
};

static const struct options *options;
static struct client *clients;
static int epoll;
static int64_t started, ends, realtime_offset;
static uint64_t sent, acked, writes, reads;
static struct histogram lag, latency, received_latency;
static uint8_t output[1 << 18];

static bool is_writable(const struct client *client) { return client->rest == NULL; }

/// Hands bytes to the kernel; what it does not take waits for EPOLLOUT.
static void write_out(struct client *client, const uint8_t *bytes, size_t size) {
    link_wrap(&bytes, &size);
    ssize_t n = link_send(client->descriptor, bytes, size);
    writes++;
    if (n == (ssize_t)size) return;
    if (n < 0 && errno != EAGAIN) fail("write");
    if (n < 0) n = 0;
    client->rest_size = size - (size_t)n;
    client->rest_sent = 0;
    client->rest = malloc(client->rest_size);
    memcpy(client->rest, bytes + n, client->rest_size);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.u64 = (uint64_t)(client - clients)};
    epoll_ctl(epoll, EPOLL_CTL_MOD, client->descriptor, &event);
}

static void on_writable(struct client *client) {
    if (!client->rest) return;
    ssize_t n = link_send(client->descriptor, client->rest + client->rest_sent, client->rest_size - client->rest_sent);
    writes++;
    if (n < 0 && errno != EAGAIN) fail("write");
    if (n > 0) client->rest_sent += (size_t)n;
    if (client->rest_sent < client->rest_size) return;
    free(client->rest);
    client->rest = NULL;
    client->able_since = now_ns();
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)(client - clients)};
    epoll_ctl(epoll, EPOLL_CTL_MOD, client->descriptor, &event);
}

// MARK: - QoS 0

/// Sends one batch, whose messages share the time they were due.
static void send_batch(struct client *client) {
    int64_t began = now_ns();
    int64_t due = client->able_since;
    histogram_record(&lag, began - due, (uint64_t)options->batch);
    uint8_t *packet = client->publish.bytes;
    for (int i = 0; i < options->batch; i++, packet += client->publish.size)
        patch_publish(packet, &client->publish, client->sequence++, due + realtime_offset);
    write_out(client, client->publish.bytes, client->publish.size * (size_t)options->batch);
    client->able_since = now_ns();
    histogram_record(&latency, client->able_since - due, (uint64_t)options->batch);
    sent += (uint64_t)options->batch;
}

/// In closed loop every client whose socket is writable sends one batch in turn.
static bool send_all_batches(void) {
    bool more = false;
    for (int i = 0; i < options->clients; i++) {
        if (!is_writable(&clients[i])) continue;
        send_batch(&clients[i]);
        more = more || is_writable(&clients[i]);
    }
    return more;
}

// MARK: - Open loop

static uint64_t due_operations;

static int64_t due_of(uint64_t operation) { return started + (int64_t)((double)operation * 1e9 / options->rate); }

/// Sends what is due for a client, each message with its own due time.
static void send_due(struct client *client, int64_t able) {
    int place = (int)(client - clients);
    uint64_t count = client->due_count - client->sequence;
    if (count == 0 || !is_writable(client)) return;
    if (count > 64) count = 64;
    int64_t began = now_ns();
    uint64_t first = client->sequence;
    for (uint64_t i = 0; i < count; i++) {
        int64_t due = due_of((first + i) * (uint64_t)options->clients + (uint64_t)place);
        uint8_t *packet = output + i * client->publish.size;
        memcpy(packet, client->publish.bytes, client->publish.size);
        patch_publish(packet, &client->publish, first + i, due + realtime_offset);
        histogram_record(&lag, began - (able > due ? able : due), 1);
    }
    client->sequence += count;
    write_out(client, output, client->publish.size * (size_t)count);
    int64_t ended = now_ns();
    for (uint64_t i = 0; i < count; i++)
        histogram_record(&latency, ended - due_of((first + i) * (uint64_t)options->clients + (uint64_t)place), 1);
    sent += count;
}

/// Sends everything due by now; returns when the next is.
static int64_t send_all_due(int64_t now) {
    int64_t until = now < ends ? now : ends - 1;
    while (due_of(due_operations) <= until) {
        struct client *client = &clients[due_operations++ % (uint64_t)options->clients];
        client->due_count++;
        send_due(client, 0);
    }
    return due_of(due_operations);
}

// MARK: - QoS 1 and 2

/// Appends as many new publishes as the window has room for.
static size_t fill_window(struct client *client, uint8_t *at, int64_t now) {
    if (now >= ends) return 0;
    size_t size = client->publish.size, written = 0;
    for (; client->in_flight < options->window; client->in_flight++, written += size) {
        uint8_t *packet = at + written;
        memcpy(packet, client->publish.bytes, size);
        if (++client->next_id == 0) client->next_id = 1;
        put_u16(packet + client->publish.id, client->next_id);
        patch_publish(packet, &client->publish, client->sequence++, now + realtime_offset);
        client->sent_at[client->next_id % RING] = now;
        sent++;
    }
    return written;
}

/// Takes acknowledgements; the answers to them and new publishes leave in one write.
static void on_acknowledgements(struct client *client, const uint8_t *bytes, size_t size) {
    int64_t now = now_ns();
    size_t answered = 0;
    for (size_t at = 0; at + 4 <= size; at += 4) {
        const uint8_t *packet = bytes + at;
        uint16_t id = get_u16(packet + 2);
        if (packet[1] != 2 || id == 0) fail("an acknowledgement of another form");
        int64_t taken = now - client->sent_at[id % RING];
        switch (packet[0]) {
        case 0x50:
            histogram_record(&received_latency, taken, 1);
            memcpy(output + answered, (const uint8_t[]){0x62, 2, packet[2], packet[3]}, 4);
            answered += 4;
            break;
        case 0x40:
        case 0x70:
            histogram_record(&latency, taken, 1);
            client->in_flight--;
            acked++;
            break;
        default: fail("packet %02x where an acknowledgement was expected", packet[0]);
        }
    }
    answered += fill_window(client, output + answered, now);
    if (answered == 0) return;
    if (is_writable(client)) {
        write_out(client, output, answered);
    } else {
        const uint8_t *bytes = output;
        link_wrap(&bytes, &answered);
        client->rest = realloc(client->rest, client->rest_size + answered);
        memcpy(client->rest + client->rest_size, bytes, answered);
        client->rest_size += answered;
    }
}

static void on_readable(struct client *client) {
    static uint8_t input[4 + 65536];
    memcpy(input, client->cut, sizeof client->cut);
    ssize_t n = link_recv(client->descriptor, input + client->cut_size, 65536);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) fail("client %d lost its connection", (int)(client - clients));
    reads++;
    size_t size = (size_t)n + (size_t)client->cut_size;
    if (options->qos == 0) fail("bytes for a publisher of QoS 0");
    client->cut_size = (int)(size % 4);
    memcpy(client->cut, input + size - (size_t)client->cut_size, (size_t)client->cut_size);
    on_acknowledgements(client, input, size - (size_t)client->cut_size);
}

// MARK: - The run

/// Whether all that was begun is written and acknowledged.
static bool is_done(void) {
    for (int i = 0; i < options->clients; i++)
        if (clients[i].rest || clients[i].in_flight > 0) return false;
    return true;
}

/// Lets sockets speak, at most until `timeout` milliseconds have passed.
static bool wait_for_events(struct ticker *ticker, int timeout) {
    struct epoll_event events[512];
    int n = epoll_wait(epoll, events, 512, timeout);
    bool ticked = false;
    for (int i = 0; i < n; i++) {
        if (events[i].data.u64 == (uint64_t)ON_TICK) {
            ticker_woke(ticker, now_ns());
            ticked = true;
            continue;
        }
        struct client *client = &clients[events[i].data.u64];
        if (events[i].events & EPOLLOUT) {
            on_writable(client);
            if (options->rate > 0) send_due(client, client->able_since);
        }
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) on_readable(client);
    }
    return ticked;
}

static void run_closed_loop(struct ticker *ticker) {
    int64_t now = now_ns();
    if (options->qos > 0) {
        for (int i = 0; i < options->clients; i++) {
            size_t size = fill_window(&clients[i], output, now);
            write_out(&clients[i], output, size);
        }
        while (now_ns() < ends) wait_for_events(ticker, 100);
        return;
    }
    for (int i = 0; i < options->clients; i++) clients[i].able_since = now;
    while (now_ns() < ends) {
        bool more = send_all_batches();
        wait_for_events(ticker, more ? 0 : 100);
    }
}

static void run_open_loop(struct ticker *ticker) {
    ticker_open(ticker, epoll, (uint64_t)ON_TICK);
    for (;;) {
        int64_t next = send_all_due(now_ns());
        if (next >= ends) return;
        ticker_arm(ticker, next);
        while (!wait_for_events(ticker, -1)) continue;
    }
}

int run_publish(const struct options *with) {
    options = with;
    raise_descriptor_limit();
    link_use(options);
    if (options->size > 2048) fail("--size is 2048 at most");
    if (options->qos > 0 && (options->window < 1 || options->window > RING / 2)) fail("--window is 1 to %d", RING / 2);
    histogram_open(&lag);
    histogram_open(&latency);
    histogram_open(&received_latency);
    clients = calloc((size_t)options->clients, sizeof *clients);
    int *descriptors = calloc((size_t)options->clients, sizeof *descriptors);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    realtime_offset = clock_ns(CLOCK_REALTIME) - now_ns();
    int copies = options->qos == 0 && options->rate == 0 ? options->batch : 1;
    for (int i = 0; i < options->clients; i++) {
        clients[i].descriptor = descriptors[i] = connected_client(options, "pub", i + 1);
        clients[i].publish = encode_publish(options, i + 1, (uint32_t)getpid(), copies);
        struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)i};
        epoll_ctl(epoll, EPOLL_CTL_ADD, descriptors[i], &event);
    }

    struct ticker ticker = {.descriptor = -1};
    struct cpu_seconds before = cpu_used();
    started = now_ns();
    ends = started + (int64_t)(options->seconds * 1e9);
    if (options->rate > 0) run_open_loop(&ticker);
    else run_closed_loop(&ticker);
    int64_t now = now_ns();
    struct cpu_seconds steady = cpu_used();
    // The drain: what was begun is ended.
    while (!is_done() && now_ns() < now + 10000000000) wait_for_events(&ticker, 100);
    disconnect_all(descriptors, options->clients);

    struct cpu_seconds all = cpu_used();
    printf("{\"command\":\"publish\",\"messages\":%llu,\"acked\":%llu,\"writes\":%llu,\"reads\":%llu,"
           "\"steady_wall_s\":%.6f,\"steady_user_s\":%.6f,\"steady_sys_s\":%.6f,\"user_s\":%.6f,\"sys_s\":%.6f,"
           "\"cpu_us_per_message\":%.5f,\"lag_p50_us\":%.2f,\"lag_p99_us\":%.2f,\"latency_p50_us\":%.2f,"
           "\"latency_p99_us\":%.2f,\"resident_bytes\":%ld}\n",
           (unsigned long long)sent, (unsigned long long)acked, (unsigned long long)writes, (unsigned long long)reads,
           (double)(now - started) / 1e9, steady.user - before.user, steady.sys - before.sys, all.user, all.sys,
           (all.user + all.sys) * 1e6 / (double)(sent ? sent : 1), histogram_percentile(&lag, 50),
           histogram_percentile(&lag, 99), histogram_percentile(&latency, 50), histogram_percentile(&latency, 99),
           resident_bytes());
    return 0;
}
