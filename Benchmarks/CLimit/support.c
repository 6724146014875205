#define _GNU_SOURCE
#include "link.h"
#include "support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

void fail(const char *message, ...) {
    int error = errno;
    va_list arguments;
    va_start(arguments, message);
    fputs("climit: ", stderr);
    vfprintf(stderr, message, arguments);
    va_end(arguments);
    fprintf(stderr, error ? ": %s\n" : "\n", strerror(error));
    exit(1);
}

// MARK: - Time

void hold(double seconds) {
    struct timespec left = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left) < 0 && errno == EINTR) continue;
}

struct cpu_seconds cpu_used(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (struct cpu_seconds){
        .user = (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6,
        .sys = (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6,
    };
}

long resident_bytes(void) {
    long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

enum { TICKER_GRID = 250000, TICKER_WINDOW = 50000000, TICKER_WAKES = 100 };

void ticker_open(struct ticker *ticker, int epoll, uint64_t data) {
    *ticker = (struct ticker){.window_start = now_ns()};
    ticker->descriptor = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = data};
    epoll_ctl(epoll, EPOLL_CTL_ADD, ticker->descriptor, &event);
}

void ticker_arm(struct ticker *ticker, int64_t due) {
    if (ticker->coarse) due = (due + TICKER_GRID - 1) / TICKER_GRID * TICKER_GRID;
    if (ticker->armed == due) return;
    ticker->armed = due;
    struct itimerspec at = {.it_value = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000}};
    timerfd_settime(ticker->descriptor, TFD_TIMER_ABSTIME, &at, NULL);
}

void ticker_woke(struct ticker *ticker, int64_t now) {
    uint64_t expirations;
    if (read(ticker->descriptor, &expirations, sizeof expirations) < 0 && errno != EAGAIN) fail("timerfd");
    ticker->armed = 0;
    ticker->wakes++;
    int64_t elapsed = now - ticker->window_start;
    if (elapsed >= TICKER_WINDOW) {
        ticker->coarse = (int64_t)ticker->wakes * TICKER_WINDOW > elapsed * TICKER_WAKES;
        ticker->window_start = now;
        ticker->wakes = 0;
    } else if (ticker->wakes > TICKER_WAKES) {
        ticker->coarse = true;
    }
}

// MARK: - Latencies

void histogram_open(struct histogram *histogram) {
    *histogram = (struct histogram){.counts = calloc(HISTOGRAM_SIZE, sizeof *histogram->counts)};
}

double histogram_percentile(const struct histogram *histogram, double percentile) {
    if (histogram->total == 0) return 0;
    uint64_t rank = (uint64_t)(percentile / 100 * (double)histogram->total + 0.5);
    if (rank < 1) rank = 1;
    uint64_t seen = 0;
    for (int i = 0; i < HISTOGRAM_SIZE; i++) {
        seen += histogram->counts[i];
        if (seen < rank) continue;
        if (i < 2048) return i / 1e3;
        int power = i / 1024 - 1;
        return ((double)((int64_t)(i % 1024 + 1024) << power) + (double)((int64_t)1 << power) / 2) / 1e3;
    }
    return (double)histogram->highest / 1e3;
}

// MARK: - Sockets

void raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int listen_on(int *port) {
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) fail("socket");
    int on = 1;
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)*port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t length = sizeof address;
    if (bind(descriptor, (struct sockaddr *)&address, length) < 0) fail("bind to port %d", *port);
    if (listen(descriptor, 4096) < 0) fail("listen");
    getsockname(descriptor, (struct sockaddr *)&address, &length);
    *port = ntohs(address.sin_port);
    return descriptor;
}

int begin_connect(const struct options *options, int number) {
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) fail("socket of client %d", number);
    int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (options->sources > 0) {
        // The port is chosen by connect, which may use it again for another destination.
        setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
        struct sockaddr_in source = {
            .sin_family = AF_INET,
            .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + (uint32_t)(number % options->sources)),
        };
        if (bind(descriptor, (struct sockaddr *)&source, sizeof source) < 0) fail("bind of client %d", number);
    }
    struct sockaddr_in target = {.sin_family = AF_INET, .sin_port = htons((uint16_t)options->port)};
    if (inet_pton(AF_INET, options->host, &target.sin_addr) != 1) fail("--host %s is no IPv4 address", options->host);
    if (connect(descriptor, (struct sockaddr *)&target, sizeof target) < 0 && errno != EINPROGRESS)
        fail("connect of client %d", number);
    return descriptor;
}

static void await(int descriptor, short events, int number) {
    struct pollfd wait = {.fd = descriptor, .events = events};
    errno = 0;
    if (poll(&wait, 1, 10000) != 1) fail("client %d waited 10 s for its server", number);
}

void send_connect(int descriptor, const char *role, int number) {
    uint8_t packet[64];
    const uint8_t *bytes = packet;
    size_t size = encode_connect(packet, role, number);
    link_wrap(&bytes, &size);
    if (link_send(descriptor, bytes, size) != (ssize_t)size) fail("CONNECT of client %d", number);
}

int connected_client(const struct options *options, const char *role, int number) {
    int descriptor = begin_connect(options, number);
    await(descriptor, POLLOUT, number);
    for (short events; (events = link_step(descriptor)) != 0;) await(descriptor, events, number);
    send_connect(descriptor, role, number);
    uint8_t packet[64];
    ssize_t size;
    do await(descriptor, POLLIN, number);
    while ((size = link_recv(descriptor, packet, sizeof packet)) < 0 && errno == EAGAIN);
    if (size != 4 || packet[0] != 0x20 || packet[3] != 0) {
        errno = 0;
        fail("client %d was not accepted", number);
    }
    return descriptor;
}

void subscribe(int descriptor, const char *topic) {
    uint8_t packet[128] = {0x82, (uint8_t)(5 + strlen(topic)), 0, 1};
    put_u16(packet + 4, (unsigned)strlen(topic));
    memcpy(packet + 6, topic, strlen(topic));
    size_t size = 7 + strlen(topic);
    if (send(descriptor, packet, size, MSG_NOSIGNAL) != (ssize_t)size) fail("SUBSCRIBE");
    await(descriptor, POLLIN, 0);
    if (recv(descriptor, packet, 5, 0) != 5 || packet[0] != 0x90 || packet[4] > 2) {
        errno = 0;
        fail("the subscription to %s was refused", topic);
    }
}

void disconnect_all(const int *descriptors, int count) {
    const uint8_t *packet = (const uint8_t[]){0xE0, 0};
    size_t size = 2;
    link_wrap(&packet, &size);
    for (int i = 0; i < count; i++) {
        if (link_send(descriptors[i], packet, size) < 0) continue;
        link_end(descriptors[i]);
    }
    for (int i = 0; i < count; i++) {
        char rest[4096];
        for (;;) {
            ssize_t n = recv(descriptors[i], rest, sizeof rest, 0);
            if (n == 0 || (n < 0 && errno != EAGAIN)) break;
            if (n < 0) await(descriptors[i], POLLIN, i);
        }
        link_close(descriptors[i]);
    }
}

// MARK: - Packets

size_t encode_connect(uint8_t *packet, const char *role, int number) {
    static const uint8_t header[] = {0x10, 0, 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 1, 0x2C};
    memcpy(packet, header, sizeof header);
    int id = sprintf((char *)packet + sizeof header + 2, "climit-%.8s-%d", role, number);
    put_u16(packet + sizeof header, (unsigned)id);
    packet[1] = (uint8_t)(sizeof header + (size_t)id);
    return sizeof header + 2 + (size_t)id;
}

struct publish encode_publish(const struct options *options, int number, uint32_t run, int copies) {
    char topic[100];
    int topic_size = snprintf(topic, sizeof topic, "%s%d", options->topic, number);
    size_t id = options->qos > 0 ? 2 : 0;
    size_t payload = options->size > PAYLOAD_HEADER ? (size_t)options->size : PAYLOAD_HEADER;
    size_t remaining = 2 + (size_t)topic_size + id + payload;
    size_t header = remaining < 128 ? 2 : remaining < 16384 ? 3 : 4;

    struct publish publish = {.size = header + remaining};
    publish.id = id ? header + 2 + (size_t)topic_size : 0;
    publish.payload = publish.size - payload;
    publish.bytes = calloc((size_t)copies, publish.size);
    uint8_t *p = publish.bytes;
    p[0] = (uint8_t)(0x30 | options->qos << 1);
    size_t rest = remaining;
    for (size_t i = 1; i < header; i++, rest >>= 7) p[i] = (uint8_t)((rest & 0x7F) | (i + 1 < header ? 0x80 : 0));
    put_u16(p + header, (unsigned)topic_size);
    memcpy(p + header + 2, topic, (size_t)topic_size);
    p += publish.payload;
    for (size_t i = PAYLOAD_HEADER; i < payload; i++) p[i] = (uint8_t)(i * 31 + 7);
    put_u32(p, PAYLOAD_MAGIC);
    put_u32(p + 4, run);
    put_u32(p + 8, (uint32_t)number);
    put_u32(p + 12, (uint32_t)options->qos);
    for (int i = 1; i < copies; i++) memcpy(publish.bytes + (size_t)i * publish.size, publish.bytes, publish.size);
    return publish;
}
