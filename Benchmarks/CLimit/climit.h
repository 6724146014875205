// What the hand-written C program is made of. It does the work that Clamor does, in one thread, on plain epoll.

#ifndef CLIMIT_H
#define CLIMIT_H

/// Everything the command line can say; each command reads what concerns it.
struct options {
    const char *host;
    int port;
    const char *mode;    // sink: what it does; decode, xml: how the stream is cut
    const char *topic;   // all topics begin with it
    int clients;         // publishers, pairs, or connections
    int subscribers;     // fan-out: all read what one publisher sends; 0 is pairs
    int qos;
    int window;          // QoS 1 and 2: in flight for each client; receive: messages under way for each pair
    int batch;           // QoS 0 in closed loop: messages a write
    int messages;        // library: how many all clients together publish; 0 is none
    int size;            // payload bytes
    double rate;         // open loop: messages a second of all clients together; 0 is closed loop
    double seconds;      // the steady phase
    int sources;         // addresses 127.0.0.2... to connect from; 0 leaves it to the kernel
    int pending;         // connects under way at once
    const char *cafile;  // clients speak TLS, and verify the server by it
    const char *certfile, *keyfile;  // the sink speaks TLS
    int websocket;       // clients speak WebSocket
    const char *domain;  // xmpp: of the JIDs u1@DOMAIN/climit..., password p
};

int run_sink(const struct options *options);
int run_publish(const struct options *options);
int run_receive(const struct options *options);
int run_connect(const struct options *options);
int run_library(const struct options *options);
int run_decode(const struct options *options);
int run_xmpp(const struct options *options);
int run_xml(const struct options *options);

#endif
