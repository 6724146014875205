// What the hand-written C program is made of. It does the work that Clamor does, in one thread, on plain epoll.

#ifndef CLIMIT_H
#define CLIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

/// Everything the command line can say; each command reads what concerns it.
struct options {
    const char *host;
    int port;
    const char *mode;
    int version;         // MQTT: 4 is 3.1.1, 5 is 5
    int clients;         // publishers, pairs, or connections
    int subscribers;
    int qos;
    int window;          // QoS 1 and 2: in flight for each client
    int batch;           // QoS 0 closed loop: messages a write
    int size;            // payload bytes
    double rate;         // open loop: messages a second of all clients; 0 is closed loop
    double seconds;      // the steady phase
    int sources;         // addresses 127.0.0.2... that clients connect from; 0 leaves it to the kernel
    int pending;         // connects under way at once
};

int run_sink(const struct options *options);
int run_publish(const struct options *options);
int run_receive(const struct options *options);
int run_connect(const struct options *options);
int run_idle(const struct options *options);
int run_decode(const struct options *options);

#endif
