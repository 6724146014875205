// The work of `connect` on libmosquitto, and that of `publish` in closed loop: one epoll loop calls the library for each
// client that has something to read.

#define _GNU_SOURCE
#include "climit.h"
#include "support.h"

#include <mosquitto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

struct publisher {
    struct mosquitto *client;
    int number;
    int left;     // messages that it has still to send
    int flying;   // handed to the library, and not acknowledged; at QoS 0 not written
    bool waits;   // its socket is full
};

static int up;
static int open_messages;

static void connected(struct mosquitto *client, void *publisher, int code) {
    (void)client;
    int number = ((struct publisher *)publisher)->number;
    if (code != 0) fail("client %d was refused: %s", number, mosquitto_connack_string(code));
    up++;
}

static void published(struct mosquitto *client, void *publisher, int identifier) {
    (void)client;
    (void)identifier;
    ((struct publisher *)publisher)->flying--;
    open_messages--;
}

static void begin(struct publisher *publisher, const struct options *options, int epoll) {
    char text[64];
    snprintf(text, sizeof text, "climit-conn-%d", publisher->number);
    struct mosquitto *client = mosquitto_new(text, true, publisher);
    if (!client) fail("client %d", publisher->number);
    publisher->client = client;
    mosquitto_connect_callback_set(client, connected);
    mosquitto_publish_callback_set(client, published);
    mosquitto_max_inflight_messages_set(client, (unsigned)options->window);
    snprintf(text, sizeof text, "127.0.0.%d", options->sources > 0 ? 2 + publisher->number % options->sources : 1);
    int result = mosquitto_connect_bind(client, options->host, options->port, 300, options->sources > 0 ? text : NULL);
    if (result != MOSQ_ERR_SUCCESS) fail("connect of client %d: %s", publisher->number, mosquitto_strerror(result));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = publisher};
    epoll_ctl(epoll, EPOLL_CTL_ADD, mosquitto_socket(client), &event);
}

static void check(int result) {
    if (result != MOSQ_ERR_SUCCESS) fail("a client lost its connection: %s", mosquitto_strerror(result));
}

/// Fills its window; at QoS 0 it hands over 16 messages at most, and fewer once its socket is full.
static void refill(struct publisher *publisher, const struct options *options, int epoll) {
    static uint8_t payload[65536];
    char topic[128];
    snprintf(topic, sizeof topic, "%s%d", options->topic, publisher->number);
    int room = options->qos == 0 ? 16 : options->window - publisher->flying;
    for (; room > 0 && publisher->left > 0 && !mosquitto_want_write(publisher->client); room--) {
        publisher->flying++;
        publisher->left--;
        check(mosquitto_publish(publisher->client, NULL, topic, options->size, payload, options->qos, false));
    }
    // At QoS 0 there is no acknowledgement to wake the loop: the socket has room for more at once.
    bool waits = mosquitto_want_write(publisher->client) || (options->qos == 0 && publisher->left > 0);
    if (waits == publisher->waits) return;
    publisher->waits = waits;
    struct epoll_event event = {.events = EPOLLIN | (waits ? EPOLLOUT : 0), .data.ptr = publisher};
    epoll_ctl(epoll, EPOLL_CTL_MOD, mosquitto_socket(publisher->client), &event);
}

static void serve(const struct epoll_event *event) {
    struct publisher *publisher = event->data.ptr;
    if (event->events & EPOLLIN) check(mosquitto_loop_read(publisher->client, 1));
    if (mosquitto_want_write(publisher->client)) check(mosquitto_loop_write(publisher->client, 1));
}

int run_library(const struct options *options) {
    raise_descriptor_limit();
    mosquitto_lib_init();
    if (options->size > 65536) fail("--size is 65536 at most");
    struct publisher *publishers = calloc((size_t)options->clients, sizeof *publishers);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int begun = 0;
    struct epoll_event events[512];
    while (up < options->clients) {
        for (; begun < options->clients && begun - up < options->pending; begun++) {
            publishers[begun].number = begun + 1;
            begin(&publishers[begun], options, epoll);
        }
        int n = epoll_wait(epoll, events, 512, 10000);
        if (n == 0) fail("nothing connected for 10 s");
        for (int i = 0; i < n; i++) serve(&events[i]);
    }
    int messages = options->messages / options->clients * options->clients;
    open_messages = messages;
    for (int i = 0; messages > 0 && i < options->clients; i++) {
        publishers[i].left = messages / options->clients;
        refill(&publishers[i], options, epoll);
    }
    while (open_messages > 0) {
        int n = epoll_wait(epoll, events, 512, 10000);
        if (n == 0) fail("nothing was acknowledged for 10 s");
        for (int i = 0; i < n; i++) {
            serve(&events[i]);
            refill(events[i].data.ptr, options, epoll);
        }
    }
    hold(options->seconds);
    // The library closes behind DISCONNECT, and waits for no answer.
    for (int i = 0; i < options->clients; i++) {
        mosquitto_disconnect(publishers[i].client);
        mosquitto_destroy(publishers[i].client);
    }
    mosquitto_lib_cleanup();
    printf("{\"command\":\"library\",\"messages\":%d}\n", messages > 0 ? messages : options->clients);
    return 0;
}
