// Logs many XMPP clients in (PLAIN, no TLS), and has each write to its neighbour: 1 and 2 to each other, 3 and 4, ...
//
// What it reads it only searches, as far as its work needs: it takes the server's XML for right.

#define _GNU_SOURCE
#include "climit.h"
#include "support.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum state { CONNECTING, OPENING, AUTHENTICATING, REOPENING, BINDING, UP, CLOSING, CLOSED };

/// What ends the answer that each state awaits.
static const char *const answers[] = {
    [OPENING] = "</stream:features>", [AUTHENTICATING] = "<success", [REOPENING] = "</stream:features>",
    [BINDING] = "</iq>",              [CLOSING] = "</stream:stream>",
};

struct client {
    int descriptor;
    uint8_t state;
    /// Bytes of the awaited end that have come.
    uint8_t matched;
    bool is_blocked;
    int credit;
    int64_t began;
    uint64_t sent, received, owed;
    /// Sequence that is expected next of the neighbour.
    uint64_t expected;
    /// A message that a read has cut.
    uint8_t *cut;
    size_t cut_size;
};

enum { READ_SIZE = 65536, BODY_HEADER = 44, LARGEST_STANZA = 65536, LARGEST_BATCH = 256 };

static const struct options *options;
static struct client *clients;
static int epoll_descriptor;
static struct histogram latency;
static uint64_t gaps, foreign, total_sent, total_received;
static uint8_t *batch;
static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static uint8_t base64_values[256];

static void base64_open(void) {
    memset(base64_values, 0x80, sizeof base64_values);
    for (int i = 0; i < 64; i++) base64_values[(uint8_t)base64[i]] = (uint8_t)i;
}

static size_t encode_base64(const uint8_t *bytes, size_t count, char *text) {
    size_t size = 0;
    for (size_t i = 0; i < count; i += 3) {
        uint32_t bits = (uint32_t)bytes[i] << 16 | (i + 1 < count ? (uint32_t)bytes[i + 1] << 8 : 0) |
                        (i + 2 < count ? bytes[i + 2] : 0);
        text[size++] = base64[bits >> 18];
        text[size++] = base64[bits >> 12 & 63];
        text[size++] = i + 1 < count ? base64[bits >> 6 & 63] : '=';
        text[size++] = i + 2 < count ? base64[bits & 63] : '=';
    }
    return size;
}

// MARK: - Login

static void say(struct client *client, const char *text, size_t size) {
    if (send(client->descriptor, text, size, MSG_NOSIGNAL) != (ssize_t)size) fail("a client could not send");
}

static void open_stream(struct client *client, const char *declaration) {
    char text[256];
    int size = snprintf(text, sizeof text,
                        "%s<stream:stream to='%s' version='1.0' xmlns='jabber:client' "
                        "xmlns:stream='http://etherx.jabber.org/streams'>",
                        declaration, options->domain);
    say(client, text, (size_t)size);
}

static void authenticate(struct client *client, int number) {
    uint8_t plain[64];
    int count = snprintf((char *)plain, sizeof plain, "%cu%d%cp", 0, number, 0);
    char text[256];
    int size = sprintf(text, "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>");
    size += (int)encode_base64(plain, (size_t)count, text + size);
    size += sprintf(text + size, "</auth>");
    say(client, text, (size_t)size);
}

static void bind_resource(struct client *client) {
    static const char text[] = "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
                               "<resource>climit</resource></bind></iq>";
    say(client, text, sizeof text - 1);
}

/// Whether the awaited end has come with these bytes.
static bool has_come(struct client *client, const uint8_t *bytes, size_t size) {
    const char *end = answers[client->state];
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == (uint8_t)end[client->matched]) {
            if (end[++client->matched] == 0) {
                client->matched = 0;
                return true;
            }
        } else {
            client->matched = bytes[i] == (uint8_t)end[0];
        }
    }
    return false;
}

static void watch(struct client *client, uint32_t events, int operation) {
    struct epoll_event event = {.events = events, .data.u64 = (uint64_t)(client - clients)};
    epoll_ctl(epoll_descriptor, operation, client->descriptor, &event);
}

/// Takes the next step of a client's login; true when it is through.
static bool step(struct client *client, uint8_t *buffer) {
    int number = (int)(client - clients) + 1;
    if (client->state == CONNECTING) {
        int error = 0;
        socklen_t length = sizeof error;
        getsockopt(client->descriptor, SOL_SOCKET, SO_ERROR, &error, &length);
        errno = error;
        if (error) fail("client %d", number);
        open_stream(client, "<?xml version='1.0'?>");
        client->state = OPENING;
        watch(client, EPOLLIN, EPOLL_CTL_MOD);
        return false;
    }
    ssize_t n = recv(client->descriptor, buffer, READ_SIZE, 0);
    if (n < 0 && errno == EAGAIN) return false;
    if (n <= 0 || memmem(buffer, (size_t)n, "<failure", 8) || memmem(buffer, (size_t)n, "type='error'", 12)) {
        if (n > 0) errno = 0;
        fail("client %d was refused or lost its connection: %.*s", number, n > 0 ? (int)n : 0, (const char *)buffer);
    }
    if (!has_come(client, buffer, (size_t)n)) return false;
    client->state++;
    switch (client->state) {
    case AUTHENTICATING: authenticate(client, number); break;
    case REOPENING: open_stream(client, ""); break;
    case BINDING: bind_resource(client); break;
    case UP: histogram_record(&latency, now_ns() - client->began, 1); return true;
    default: break;
    }
    return false;
}

static void log_in(uint8_t *buffer) {
    int begun = 0, up = 0;
    while (up < options->clients) {
        while (begun < options->clients && begun - up < options->pending) {
            struct client *client = &clients[begun];
            client->began = now_ns();
            client->descriptor = begin_connect(options, ++begun);
            watch(client, EPOLLOUT, EPOLL_CTL_ADD);
        }
        struct epoll_event events[512];
        int n = epoll_wait(epoll_descriptor, events, 512, 30000);
        if (n == 0) fail("nobody logged in for 30 s");
        for (int i = 0; i < n; i++) up += step(&clients[events[i].data.u64], buffer);
    }
}

// MARK: - Messages

/// One message for each client, in one piece of memory; id, sequence and due time are patched.
static uint8_t *messages;
static size_t stride;
static uint16_t *sizes, *headers;
static uint32_t run_id;

static void make_messages(void) {
    size_t body = options->size > BODY_HEADER ? (size_t)options->size : BODY_HEADER;
    stride = 256 + body;
    messages = calloc((size_t)options->clients, stride);
    sizes = calloc((size_t)options->clients, sizeof *sizes);
    headers = calloc((size_t)options->clients, sizeof *headers);
    run_id = (uint32_t)now_ns() | 1;
    for (int i = 0; i < options->clients; i++) {
        char *text = (char *)messages + (size_t)i * stride;
        int peer = (i ^ 1) < options->clients ? i ^ 1 : i;
        int size = sprintf(text, "<message type='chat' id='m00000000' to='u%d@%s/climit'><body>", peer + 1, options->domain);
        headers[i] = (uint16_t)size;
        uint8_t header[32] = {0};
        put_u32(header, PAYLOAD_MAGIC);
        put_u32(header + 4, run_id);
        put_u32(header + 8, (uint32_t)i);
        encode_base64(header, sizeof header, text + size);
        for (size_t at = BODY_HEADER; at < body; at++) text[size + (int)at] = (char)('a' + at % 26);
        size += (int)body;
        size += sprintf(text + size, "</body></message>");
        sizes[i] = (uint16_t)size;
    }
}

static void patch(uint8_t *message, int number, uint64_t sequence, int64_t due) {
    static const char hex[] = "0123456789abcdef";
    uint32_t digits = (uint32_t)sequence;
    for (int i = 0; i < 8; i++, digits >>= 4) message[33 - i] = (uint8_t)hex[digits & 15];
    // The bytes from the 12th on are a group of base64 of their own: flags, sequence, due time.
    uint8_t varying[20] = {0};
    put_u64(varying + 4, sequence);
    put_u64(varying + 12, (uint64_t)due);
    encode_base64(varying, sizeof varying, (char *)message + headers[number] + 16);
}

/// Sends as many messages as the client may, in one write.
static void pump(struct client *client, int64_t now) {
    int number = (int)(client - clients);
    uint64_t count = options->rate > 0 ? client->owed : (uint64_t)(client->credit > 0 ? client->credit : 0);
    if (count > LARGEST_BATCH) count = LARGEST_BATCH;
    if (count == 0 || client->is_blocked) return;
    size_t size = sizes[number];
    uint8_t *model = messages + (size_t)number * stride;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(batch + i * size, model, size);
        patch(batch + i * size, number, client->sent + i, now);
    }
    ssize_t taken = send(client->descriptor, batch, count * size, MSG_NOSIGNAL);
    if (taken != (ssize_t)(count * size)) {
        // The load is made so that this does not happen: a window is far below a socket's buffer.
        errno = taken < 0 ? errno : 0;
        fail("client %d: the socket took %zd of %zu bytes; lower --window", number + 1, taken, count * size);
    }
    client->sent += count;
    total_sent += count;
    if (options->rate > 0) client->owed -= count; else client->credit -= (int)count;
}

static void take(struct client *client, const uint8_t *message, size_t size, int64_t now) {
    const uint8_t *body = memmem(message, size, "<body>", 6);
    if (!body || body + 6 + BODY_HEADER > message + size) {
        foreign++;
        return;
    }
    uint8_t header[33];
    const uint8_t *text = body + 6;
    uint8_t all = 0;
    for (int group = 0; group < 11; group++, text += 4) {
        uint8_t a = base64_values[text[0]], b = base64_values[text[1]], c = base64_values[text[2]];
        uint8_t d = group == 10 ? 0 : base64_values[text[3]];
        all |= a | b | c | d;
        uint32_t bits = (uint32_t)a << 18 | (uint32_t)b << 12 | (uint32_t)c << 6 | d;
        header[group * 3] = (uint8_t)(bits >> 16);
        header[group * 3 + 1] = (uint8_t)(bits >> 8);
        header[group * 3 + 2] = (uint8_t)bits;
    }
    if (all & 0x80 || get_u32(header) != PAYLOAD_MAGIC || get_u32(header + 4) != run_id) {
        foreign++;
        return;
    }
    uint64_t sequence = get_u64(header + 16);
    if (sequence != client->expected) gaps++;
    client->expected = sequence + 1;
    histogram_record(&latency, now - (int64_t)get_u64(header + 24), 1);
    client->received++;
    client->credit++;
    total_received++;
}

/// Finds the messages in what was read, which begins with what the last read cut.
static void read_messages(struct client *client, uint8_t *buffer) {
    static const char end[] = "</message>";
    size_t kept = client->cut_size;
    if (kept) memcpy(buffer, client->cut, kept);
    ssize_t n = recv(client->descriptor, buffer + kept, READ_SIZE, 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) fail("client %d lost its connection", (int)(client - clients) + 1);
    int64_t now = now_ns();
    uint8_t *at = buffer, *limit = buffer + kept + (size_t)n;
    for (uint8_t *found; (found = memmem(at, (size_t)(limit - at), end, sizeof end - 1));) {
        found += sizeof end - 1;
        take(client, at, (size_t)(found - at), now);
        at = found;
    }
    client->cut_size = (size_t)(limit - at);
    if (client->cut_size > LARGEST_STANZA) fail("client %d was sent a stanza without an end", (int)(client - clients) + 1);
    if (client->cut_size) {
        if (!client->cut) client->cut = malloc(LARGEST_STANZA);
        memcpy(client->cut, at, client->cut_size);
    }
}

static void converse(uint8_t *buffer) {
    struct ticker ticker;
    ticker_open(&ticker, epoll_descriptor, UINT64_MAX);
    int64_t started = now_ns(), end = started + (int64_t)(options->seconds * 1e9);
    int64_t give_up = end + 10000000000;
    uint64_t offered = 0;
    bool ends = false;
    for (int i = 0; i < options->clients; i++) {
        clients[i].credit = options->window;
        if (options->rate <= 0) pump(&clients[i], now_ns());
    }
    for (;;) {
        int64_t now = now_ns();
        ends = ends || now >= end;
        if (ends && (total_received + foreign >= total_sent || now > give_up)) break;
        int64_t due = ends ? now + 10000000 : end;
        if (!ends && options->rate > 0) {
            while ((due = started + (int64_t)((double)offered * 1e9 / options->rate)) <= now && due < end) {
                struct client *client = &clients[offered++ % (uint64_t)options->clients];
                client->owed++;
                pump(client, due);
            }
            if (due > end) due = end;
        }
        ticker_arm(&ticker, due);
        struct epoll_event events[512];
        int n = epoll_wait(epoll_descriptor, events, 512, 1000);
        for (int i = 0; i < n; i++) {
            if (events[i].data.u64 == UINT64_MAX) {
                ticker_woke(&ticker, now_ns());
                continue;
            }
            struct client *client = &clients[events[i].data.u64];
            read_messages(client, buffer);
            if (!ends && options->rate <= 0) pump(client, now_ns());
        }
    }
    close(ticker.descriptor);
}

/// Ends all streams in good order: our closing tag, and the server's.
static void leave(uint8_t *buffer) {
    for (int i = 0; i < options->clients; i++) {
        clients[i].state = CLOSING;
        clients[i].matched = 0;
        say(&clients[i], "</stream:stream>", 16);
    }
    for (int i = 0; i < options->clients; i++) {
        struct pollfd wait = {.fd = clients[i].descriptor, .events = POLLIN};
        while (poll(&wait, 1, 10000) == 1) {
            ssize_t n = recv(wait.fd, buffer, READ_SIZE, 0);
            if (n <= 0 || has_come(&clients[i], buffer, (size_t)n)) break;
        }
        close(clients[i].descriptor);
    }
}

int run_xmpp(const struct options *with) {
    options = with;
    bool converses = !strcmp(options->mode, "message");
    raise_descriptor_limit();
    long resident_before = resident_bytes();
    base64_open();
    histogram_open(&latency);
    clients = calloc((size_t)options->clients, sizeof *clients);
    epoll_descriptor = epoll_create1(EPOLL_CLOEXEC);
    uint8_t *buffer = malloc(READ_SIZE + LARGEST_STANZA);

    int64_t started = now_ns();
    struct cpu_seconds before = cpu_used();
    log_in(buffer);
    int64_t connected = now_ns();
    struct cpu_seconds steady = cpu_used();
    long resident = resident_bytes();
    double login_p50 = histogram_percentile(&latency, 50), login_p99 = histogram_percentile(&latency, 99);

    double message_cpu = 0;
    if (converses) {
        make_messages();
        batch = malloc(LARGEST_BATCH * stride);
        memset(latency.counts, 0, HISTOGRAM_SIZE * sizeof *latency.counts);
        latency.total = 0;
        struct cpu_seconds from = cpu_used();
        converse(buffer);
        struct cpu_seconds to = cpu_used();
        message_cpu = to.user - from.user + to.sys - from.sys;
    } else {
        struct timespec hold = {.tv_sec = (time_t)options->seconds,
                                .tv_nsec = (long)((options->seconds - (double)(time_t)options->seconds) * 1e9)};
        while (nanosleep(&hold, &hold) < 0 && errno == EINTR) continue;
    }
    leave(buffer);

    struct cpu_seconds all = cpu_used();
    double login_cpu = steady.user - before.user + steady.sys - before.sys;
    printf("{\"command\":\"xmpp\",\"logins\":%d,\"login_wall_s\":%.6f,\"cpu_us_per_login\":%.3f,\"login_p50_us\":%.2f,"
           "\"login_p99_us\":%.2f,\"resident_bytes_per_client\":%.1f,\"user_s\":%.6f,\"sys_s\":%.6f",
           options->clients, (double)(connected - started) / 1e9, login_cpu * 1e6 / options->clients, login_p50,
           login_p99, (double)(resident - resident_before) / options->clients, all.user, all.sys);
    if (converses)
        printf(",\"messages\":%llu,\"received\":%llu,\"gaps\":%llu,\"foreign\":%llu,\"cpu_us_per_message\":%.3f,"
               "\"latency_p50_us\":%.2f,\"latency_p99_us\":%.2f",
               (unsigned long long)total_sent, (unsigned long long)total_received, (unsigned long long)gaps,
               (unsigned long long)foreign, total_sent ? message_cpu * 1e6 / (double)total_sent : 0.0,
               histogram_percentile(&latency, 50), histogram_percentile(&latency, 99));
    puts("}");
    return 0;
}
