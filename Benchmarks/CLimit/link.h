// What stands between a packet and its socket: nothing, TLS, or WebSocket. Every link of a process is of the same kind.

#ifndef LINK_H
#define LINK_H

#include "climit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

enum link_kind { LINK_TCP, LINK_TLS, LINK_WEBSOCKET };
extern enum link_kind link_kind;

/// Whether the last read filled its buffer, so that something may be left inside TLS, of which no event tells.
extern bool link_has_more;

/// Sets up what all links of a client share: with --cafile TLS, which verifies; with --ws WebSocket.
void link_use(const struct options *options);

/// The same for a server with --certfile and --keyfile.
void link_serve(const struct options *options);

/// The server's side of a connection that was accepted.
void link_accepted(int descriptor);

/// Takes the next step from a connected socket to one that carries packets. Returns 0 when it is through, else what the
/// socket has to be polled for. Ends the program when the peer refuses.
short link_step(int descriptor);

/// Says that nothing more comes from here; the other direction stays open.
void link_end(int descriptor);

/// Gives back what the link holds beside the descriptor, and closes that too.
void link_close(int descriptor);

/// WebSocket: puts the bytes into one masked frame, in a buffer that is valid until the next call.
void link_wrap(const uint8_t **bytes, size_t *size);

ssize_t link_send_tls(int descriptor, const void *bytes, size_t size);
ssize_t link_recv_other(int descriptor, void *bytes, size_t size);

/// As `send`: what the socket does not take is the caller's to keep. The bytes are wrapped already.
static inline ssize_t link_send(int descriptor, const void *bytes, size_t size) {
    if (link_kind != LINK_TLS) return send(descriptor, bytes, size, MSG_NOSIGNAL);
    return link_send_tls(descriptor, bytes, size);
}

/// As `recv`, of the bytes that are packets; reads until the socket has no more.
static inline ssize_t link_recv(int descriptor, void *bytes, size_t size) {
    if (link_kind == LINK_TCP) return recv(descriptor, bytes, size, 0);
    return link_recv_other(descriptor, bytes, size);
}

#endif
