// Both ends of deliveries: publishers send in open loop, subscribers decode, keep a ledger of sequences and record the
// time from due to received. One publisher to all subscribers, or pairs.
//
// Without --rate it is a closed loop for measuring brokers: each pair keeps --window messages under way and sends
// again as many as have arrived, so that no broker has to drop any.

#define _GNU_SOURCE
#include "climit.h"
#include "decoder.h"
#include "support.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ON_TICK = -1 };

struct publisher {
    int descriptor;
    struct publish publish;
    uint64_t sequence;
};

struct subscriber {
    int descriptor;
    uint32_t publisher;
    struct decoder decoder;
    uint64_t next;          // the sequence that comes next
    uint64_t arrived;       // in this read
};

static const struct options *options;
static struct publisher *publishers;
static struct subscriber *subscribers;
static int publisher_count, subscriber_count, epoll;
static uint32_t run;
static int64_t started, ends, realtime_offset, read_at;
static uint64_t sent, received, reads, gaps, late, foreign;
static struct histogram lag, latency;
static uint8_t output[1 << 18];

// MARK: - Receiving

__attribute__((always_inline)) static inline void on_message(void *context, const struct message *message) {
    struct subscriber *subscriber = context;
    const uint8_t *payload = message->payload;
    if (message->payload_size < PAYLOAD_HEADER || get_u32(payload) != PAYLOAD_MAGIC || get_u32(payload + 4) != run
        || get_u32(payload + 8) != subscriber->publisher) {
        foreign++;
        return;
    }
    received++;
    subscriber->arrived++;
    uint64_t sequence = get_u64(payload + 16);
    if (sequence == subscriber->next) {
        subscriber->next++;
    } else if (sequence > subscriber->next) {
        gaps += sequence - subscriber->next;
        subscriber->next = sequence + 1;
    } else {
        late++;
    }
    histogram_record(&latency, read_at - (int64_t)(get_u64(payload + 24) - (uint64_t)realtime_offset), 1);
}

static void send_batch(struct publisher *publisher, uint64_t count, int64_t due);

static void on_readable(struct subscriber *subscriber) {
    static uint8_t input[65536];
    ssize_t n = recv(subscriber->descriptor, input, sizeof input, 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) fail("subscriber %d lost its connection", (int)(subscriber - subscribers));
    reads++;
    read_at = now_ns();
    subscriber->arrived = 0;
    if (!decode(&subscriber->decoder, input, (size_t)n, false, true, on_message, subscriber))
        fail("what subscriber %d reads is no MQTT", (int)(subscriber - subscribers));
    if (options->rate == 0 && subscriber->arrived > 0 && read_at < ends)
        send_batch(&publishers[subscriber - subscribers], subscriber->arrived, read_at);
}

// MARK: - Sending

static void write_all(struct publisher *publisher, const uint8_t *bytes, size_t size) {
    ssize_t n = send(publisher->descriptor, bytes, size, MSG_NOSIGNAL);
    if (n == (ssize_t)size) return;
    // Some kilobytes under way never fill a socket; if they do, the figures are worth nothing.
    fail("publisher %d found its socket full", (int)(publisher - publishers));
}

static void send_batch(struct publisher *publisher, uint64_t count, int64_t due) {
    size_t size = publisher->publish.size;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(output + i * size, publisher->publish.bytes, size);
        patch_publish(output + i * size, &publisher->publish, publisher->sequence++, due + realtime_offset);
    }
    write_all(publisher, output, size * count);
    sent += count;
}

static int64_t due_of(uint64_t operation) { return started + (int64_t)((double)operation * 1e9 / options->rate); }

static int64_t send_all_due(int64_t now) {
    int64_t until = now < ends ? now : ends;
    for (int64_t due; (due = due_of(sent)) <= until && due < ends;) {
        struct publisher *publisher = &publishers[sent % (uint64_t)publisher_count];
        histogram_record(&lag, now_ns() - due, 1);
        send_batch(publisher, 1, due);
    }
    return due_of(sent);
}

// MARK: - The run

static bool wait_for_events(struct ticker *ticker, int timeout) {
    struct epoll_event events[512];
    int n = epoll_wait(epoll, events, 512, timeout);
    bool ticked = false;
    for (int i = 0; i < n; i++) {
        if (events[i].data.u64 == (uint64_t)ON_TICK) {
            ticker_woke(ticker, now_ns());
            ticked = true;
        } else {
            on_readable(&subscribers[events[i].data.u64]);
        }
    }
    return ticked;
}

static void connect_all(int *descriptors) {
    publishers = calloc((size_t)publisher_count, sizeof *publishers);
    subscribers = calloc((size_t)subscriber_count, sizeof *subscribers);
    for (int i = 0; i < subscriber_count; i++) {
        struct subscriber *subscriber = &subscribers[i];
        int publisher = publisher_count == 1 ? 1 : i + 1;
        char topic[100];
        snprintf(topic, sizeof topic, "%s%d", options->topic, publisher);
        subscriber->publisher = (uint32_t)publisher;
        subscriber->descriptor = *descriptors++ = connected_client(options, "sub", i + 1);
        subscribe(subscriber->descriptor, topic);
        struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)i};
        epoll_ctl(epoll, EPOLL_CTL_ADD, subscriber->descriptor, &event);
    }
    for (int i = 0; i < publisher_count; i++) {
        publishers[i].descriptor = *descriptors++ = connected_client(options, "pub", i + 1);
        publishers[i].publish = encode_publish(options, i + 1, run, 1);
    }
}

int run_receive(const struct options *with) {
    options = with;
    raise_descriptor_limit();
    if ((size_t)options->window * ((size_t)options->size + 128) > sizeof output) fail("--window is too large");
    histogram_open(&lag);
    histogram_open(&latency);
    run = (uint32_t)getpid();
    publisher_count = options->subscribers > 0 ? 1 : options->clients;
    subscriber_count = options->subscribers > 0 ? options->subscribers : options->clients;
    int *descriptors = calloc((size_t)(publisher_count + subscriber_count), sizeof *descriptors);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    realtime_offset = clock_ns(CLOCK_REALTIME) - now_ns();
    connect_all(descriptors);

    struct ticker ticker;
    ticker_open(&ticker, epoll, (uint64_t)ON_TICK);
    struct cpu_seconds before = cpu_used();
    started = now_ns();
    ends = started + (int64_t)(options->seconds * 1e9);
    if (options->rate > 0) {
        for (int64_t next; (next = send_all_due(now_ns())) < ends;) {
            ticker_arm(&ticker, next);
            while (!wait_for_events(&ticker, -1)) continue;
        }
    } else {
        for (int i = 0; i < publisher_count; i++) send_batch(&publishers[i], (uint64_t)options->window, started);
        while (now_ns() < ends) wait_for_events(&ticker, 100);
    }
    int64_t now = now_ns();
    uint64_t steady_received = received;
    struct cpu_seconds steady = cpu_used();
    // The drain: what was sent arrives.
    uint64_t expected = sent * (uint64_t)(subscriber_count / publisher_count);
    while (received < expected && now_ns() < now + 5000000000) wait_for_events(&ticker, 100);
    disconnect_all(descriptors, publisher_count + subscriber_count);

    struct cpu_seconds all = cpu_used();
    printf("{\"command\":\"receive\",\"messages\":%llu,\"received\":%llu,\"expected\":%llu,\"gaps\":%llu,\"late\":%llu,"
           "\"foreign\":%llu,\"reads\":%llu,\"steady_wall_s\":%.6f,\"steady_received\":%llu,\"steady_user_s\":%.6f,"
           "\"steady_sys_s\":%.6f,\"user_s\":%.6f,\"sys_s\":%.6f,\"cpu_us_per_delivery\":%.5f,\"lag_p50_us\":%.2f,"
           "\"lag_p99_us\":%.2f,\"latency_p50_us\":%.2f,\"latency_p99_us\":%.2f}\n",
           (unsigned long long)sent, (unsigned long long)received, (unsigned long long)expected,
           (unsigned long long)gaps, (unsigned long long)late, (unsigned long long)foreign, (unsigned long long)reads,
           (double)(now - started) / 1e9, (unsigned long long)steady_received, steady.user - before.user,
           steady.sys - before.sys, all.user, all.sys,
           (all.user + all.sys) * 1e6 / (double)(received ? received : 1), histogram_percentile(&lag, 50),
           histogram_percentile(&lag, 99), histogram_percentile(&latency, 50), histogram_percentile(&latency, 99));
    return 0;
}
