// Connects many clients (TCP to CONNACK), so many under way at once, and then holds them without a word.

#define _GNU_SOURCE
#include "climit.h"
#include "link.h"
#include "support.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum state { CONNECTING, AWAITING_CONNACK, UP };

/// All that an idle client needs here.
struct client {
    int descriptor;
    enum state state;
    uint32_t events;
    int64_t began;
};

static const struct options *options;
static struct client *clients;
static struct histogram latency;

/// Takes the next step of a client's connect; true when it is through.
static bool step(struct client *client, int epoll) {
    int number = (int)(client - clients) + 1;
    if (client->state == CONNECTING) {
        short wanted = link_step(client->descriptor);
        if (wanted == 0) {
            send_connect(client->descriptor, "conn", number);
            client->state = AWAITING_CONNACK;
            wanted = POLLIN;
        }
        // Plain TCP is registered for both, once.
        if (link_kind == LINK_TCP) return false;
        uint32_t events = wanted == POLLIN ? EPOLLIN : EPOLLOUT;
        if (events == client->events) return false;
        client->events = events;
        struct epoll_event event = {.events = events, .data.u64 = (uint64_t)(client - clients)};
        epoll_ctl(epoll, EPOLL_CTL_MOD, client->descriptor, &event);
        return false;
    }
    uint8_t packet[64];
    ssize_t n = link_recv(client->descriptor, packet, sizeof packet);
    if (n < 0 && errno == EAGAIN) return false;
    if (client->state == UP || n != 4 || packet[0] != 0x20 || packet[3] != 0) {
        errno = 0;
        fail("client %d was refused or lost its connection", number);
    }
    client->state = UP;
    histogram_record(&latency, now_ns() - client->began, 1);
    return true;
}

int run_connect(const struct options *with) {
    options = with;
    raise_descriptor_limit();
    link_use(options);
    long resident_before = resident_bytes();
    histogram_open(&latency);
    clients = calloc((size_t)options->clients, sizeof *clients);
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    int64_t started = now_ns();
    struct cpu_seconds before = cpu_used();
    int begun = 0, up = 0;
    while (up < options->clients) {
        while (begun < options->clients && begun - up < options->pending) {
            struct client *client = &clients[begun];
            client->began = now_ns();
            client->descriptor = begin_connect(options, begun + 1);
            client->events = link_kind == LINK_TCP ? EPOLLIN | EPOLLOUT | EPOLLET : EPOLLOUT;
            struct epoll_event event = {.events = client->events, .data.u64 = (uint64_t)begun++};
            epoll_ctl(epoll, EPOLL_CTL_ADD, client->descriptor, &event);
        }
        struct epoll_event events[512];
        int n = epoll_wait(epoll, events, 512, 10000);
        if (n == 0) fail("nothing connected for 10 s");
        for (int i = 0; i < n; i++) up += step(&clients[events[i].data.u64], epoll);
    }
    int64_t connected = now_ns();
    struct cpu_seconds steady = cpu_used();
    long resident = resident_bytes();

    hold(options->seconds);
    int *descriptors = calloc((size_t)options->clients, sizeof *descriptors);
    for (int i = 0; i < options->clients; i++) descriptors[i] = clients[i].descriptor;
    disconnect_all(descriptors, options->clients);

    struct cpu_seconds all = cpu_used();
    printf("{\"command\":\"connect\",\"messages\":%d,\"steady_wall_s\":%.6f,\"steady_user_s\":%.6f,"
           "\"steady_sys_s\":%.6f,\"user_s\":%.6f,\"sys_s\":%.6f,\"cpu_us_per_connect\":%.3f,\"latency_p50_us\":%.2f,"
           "\"latency_p99_us\":%.2f,\"resident_bytes_per_client\":%.1f}\n",
           options->clients, (double)(connected - started) / 1e9, steady.user - before.user, steady.sys - before.sys,
           all.user, all.sys, (steady.user + steady.sys) * 1e6 / options->clients, histogram_percentile(&latency, 50),
           histogram_percentile(&latency, 99), (double)(resident - resident_before) / options->clients);
    return 0;
}
