// The work of `connect` on libmosquitto: one epoll loop calls the library for each client that has something to read.

#define _GNU_SOURCE
#include "climit.h"
#include "support.h"

#include <mosquitto.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

static int up;

static void connected(struct mosquitto *client, void *number, int code) {
    (void)client;
    if (code != 0) fail("client %d was refused: %s", (int)(intptr_t)number, mosquitto_connack_string(code));
    up++;
}

static struct mosquitto *begin(const struct options *options, int number, int epoll) {
    char text[64];
    snprintf(text, sizeof text, "climit-conn-%d", number);
    struct mosquitto *client = mosquitto_new(text, true, (void *)(intptr_t)number);
    if (!client) fail("client %d", number);
    mosquitto_connect_callback_set(client, connected);
    snprintf(text, sizeof text, "127.0.0.%d", options->sources > 0 ? 2 + number % options->sources : 1);
    int result = mosquitto_connect_bind(client, options->host, options->port, 300, options->sources > 0 ? text : NULL);
    if (result != MOSQ_ERR_SUCCESS) fail("connect of client %d: %s", number, mosquitto_strerror(result));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    epoll_ctl(epoll, EPOLL_CTL_ADD, mosquitto_socket(client), &event);
    return client;
}

int run_library(const struct options *options) {
    raise_descriptor_limit();
    mosquitto_lib_init();
    struct mosquitto **clients = calloc((size_t)options->clients, sizeof *clients);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int begun = 0;
    while (up < options->clients) {
        for (; begun < options->clients && begun - up < options->pending; begun++)
            clients[begun] = begin(options, begun + 1, epoll);
        struct epoll_event events[512];
        int n = epoll_wait(epoll, events, 512, 10000);
        if (n == 0) fail("nothing connected for 10 s");
        for (int i = 0; i < n; i++) {
            int result = mosquitto_loop_read(events[i].data.ptr, 1);
            if (result != MOSQ_ERR_SUCCESS) fail("a client lost its connection: %s", mosquitto_strerror(result));
        }
    }
    hold(options->seconds);
    // The library closes behind DISCONNECT, and waits for no answer.
    for (int i = 0; i < options->clients; i++) {
        mosquitto_disconnect(clients[i]);
        mosquitto_destroy(clients[i]);
    }
    mosquitto_lib_cleanup();
    printf("{\"command\":\"library\",\"messages\":%d}\n", options->clients);
    return 0;
}
