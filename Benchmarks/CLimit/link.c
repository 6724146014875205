#define _GNU_SOURCE
#include "link.h"
#include "support.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DESCRIPTORS = 1 << 20, FRAME_LIMIT = 1 << 18 };

/// Of one WebSocket connection: where it is in the upgrade, or in a frame.
struct websocket {
    bool upgraded, asked;
    uint8_t front[10];      // of a frame's header, while the rest of it is missing
    int front_size;
    uint64_t left;          // payload bytes of this frame still to come
    char reply[1024];
    int reply_size;
};

enum link_kind link_kind = LINK_TCP;
bool link_has_more = false;
static SSL_CTX *context;
static const char *host;
static SSL **tls;                       // by descriptor
static struct websocket **websockets;   // by descriptor

__attribute__((noreturn)) static void fail_tls(const char *what) {
    char text[256] = "no reason given";
    unsigned long error = ERR_peek_last_error();
    if (error) ERR_error_string_n(error, text, sizeof text);
    errno = 0;
    fail("%s: %s", what, text);
}

static void make_context(const SSL_METHOD *method) {
    link_kind = LINK_TLS;
    context = SSL_CTX_new(method);
    if (!context) fail_tls("TLS");
    // A write that the socket does not take at once may go on from another buffer; one read fetches what is there; a
    // link that is silent keeps no buffers.
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
                                  | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(context, 1);
    tls = calloc(DESCRIPTORS, sizeof *tls);
}

void link_use(const struct options *options) {
    host = options->host;
    if (options->websocket) {
        if (options->cafile) fail("--ws and --cafile exclude each other");
        link_kind = LINK_WEBSOCKET;
        websockets = calloc(DESCRIPTORS, sizeof *websockets);
    } else if (options->cafile) {
        make_context(TLS_client_method());
        if (SSL_CTX_load_verify_locations(context, options->cafile, NULL) != 1) fail_tls(options->cafile);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    }
}

void link_serve(const struct options *options) {
    if (!options->certfile) return;
    make_context(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(context, options->certfile) != 1) fail_tls(options->certfile);
    if (!options->keyfile || SSL_CTX_use_PrivateKey_file(context, options->keyfile, SSL_FILETYPE_PEM) != 1)
        fail_tls(options->keyfile ? options->keyfile : "--keyfile");
}

static SSL *make_link(int descriptor) {
    SSL *link = tls[descriptor] = SSL_new(context);
    if (!link || SSL_set_fd(link, descriptor) != 1) fail_tls("TLS");
    return link;
}

void link_accepted(int descriptor) {
    if (link_kind == LINK_TLS) SSL_set_accept_state(make_link(descriptor));
}

void link_end(int descriptor) {
    // Without its close_notify the other side could not tell an end from a cut.
    if (link_kind == LINK_TLS) SSL_shutdown(tls[descriptor]);
    shutdown(descriptor, SHUT_WR);
}

void link_close(int descriptor) {
    if (link_kind == LINK_TLS) {
        SSL_free(tls[descriptor]);
        tls[descriptor] = NULL;
    } else if (link_kind == LINK_WEBSOCKET) {
        free(websockets[descriptor]);
        websockets[descriptor] = NULL;
    }
    close(descriptor);
}

// MARK: - Opening

static short step_tls(int descriptor) {
    SSL *link = tls[descriptor];
    if (!link) {
        link = make_link(descriptor);
        // The name that the certificate has to be for.
        if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(link), host) != 1) fail_tls("--host");
        SSL_set_connect_state(link);
    }
    ERR_clear_error();
    int result = SSL_do_handshake(link);
    if (result == 1) return 0;
    switch (SSL_get_error(link, result)) {
    case SSL_ERROR_WANT_READ: return POLLIN;
    case SSL_ERROR_WANT_WRITE: return POLLOUT;
    default: fail_tls("TLS handshake");
    }
}

static short step_websocket(int descriptor) {
    struct websocket *link = websockets[descriptor];
    if (!link) link = websockets[descriptor] = calloc(1, sizeof *link);
    if (!link->asked) {
        char request[512];
        int size = snprintf(request, sizeof request,
                            "GET /mqtt HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
                            "Sec-WebSocket-Protocol: mqtt\r\n\r\n",
                            host);
        if (send(descriptor, request, (size_t)size, MSG_NOSIGNAL) != size) fail("WebSocket upgrade");
        link->asked = true;
        return POLLIN;
    }
    // The server says nothing more before CONNECT.
    ssize_t n = recv(descriptor, link->reply + link->reply_size, sizeof link->reply - 1 - (size_t)link->reply_size, 0);
    if (n < 0 && errno == EAGAIN) return POLLIN;
    if (n <= 0) fail("the server closed at the WebSocket upgrade");
    link->reply_size += (int)n;
    if (!strstr(link->reply, "\r\n\r\n")) return POLLIN;
    errno = 0;
    if (strncmp(link->reply, "HTTP/1.1 101", 12)) fail("no WebSocket upgrade: %.40s", link->reply);
    link->upgraded = true;
    return 0;
}

short link_step(int descriptor) {
    switch (link_kind) {
    case LINK_TLS: return step_tls(descriptor);
    case LINK_WEBSOCKET: return step_websocket(descriptor);
    default: return 0;
    }
}

// MARK: - Sending

ssize_t link_send_tls(int descriptor, const void *bytes, size_t size) {
    ERR_clear_error();
    int result = SSL_write(tls[descriptor], bytes, (int)size);
    if (result > 0) {
        // Parts are as long as a record.
        size_t sent = (size_t)result;
        if (sent == size) return result;
        ssize_t more = link_send_tls(descriptor, (const uint8_t *)bytes + sent, size - sent);
        return more < 0 ? result : result + more;
    }
    int error = SSL_get_error(tls[descriptor], result);
    errno = error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ ? EAGAIN : errno ? errno : EPIPE;
    return -1;
}

void link_wrap(const uint8_t **bytes, size_t *size) {
    static uint8_t frame[14 + FRAME_LIMIT + 8];
    static uint64_t random = 0x9E3779B97F4A7C15;
    if (link_kind != LINK_WEBSOCKET) return;
    if (*size > FRAME_LIMIT) fail("a frame of %zu bytes", *size);
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    // §5.2: FIN and binary; the mask bit stands with the length.
    size_t header = 2;
    frame[0] = 0x82;
    if (*size < 126) {
        frame[1] = (uint8_t)(0x80 | *size);
    } else if (*size < 65536) {
        frame[1] = 0x80 | 126;
        put_u16(frame + 2, (unsigned)*size);
        header = 4;
    } else {
        frame[1] = 0x80 | 127;
        put_u64(frame + 2, *size);
        header = 10;
    }
    uint32_t key = (uint32_t)random;
    memcpy(frame + header, &key, 4);
    uint64_t mask = (uint64_t)key << 32 | key;
    const uint8_t *from = *bytes;
    uint8_t *to = frame + header + 4;
    size_t at = 0;
    for (uint64_t word; at + 8 <= *size; at += 8) {
        memcpy(&word, from + at, 8);
        word ^= mask;
        memcpy(to + at, &word, 8);
    }
    for (; at < *size; at++) to[at] = from[at] ^ (uint8_t)(key >> (8 * (at & 3)));
    *bytes = frame;
    *size += header + 4;
}

// MARK: - Receiving

static ssize_t recv_tls(int descriptor, uint8_t *bytes, size_t size) {
    size_t got = 0;
    link_has_more = false;
    while (got < size) {
        ERR_clear_error();
        int result = SSL_read(tls[descriptor], bytes + got, (int)(size - got));
        if (result > 0) {
            got += (size_t)result;
            continue;
        }
        int error = SSL_get_error(tls[descriptor], result);
        if (got > 0) return (ssize_t)got;
        if (error == SSL_ERROR_ZERO_RETURN) return 0;
        errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : errno ? errno : EPROTO;
        return -1;
    }
    link_has_more = true;
    return (ssize_t)got;
}

/// Takes the frames' headers out of what was read. Returns how many bytes are packets.
static size_t unwrap(struct websocket *link, uint8_t *bytes, size_t size) {
    size_t at = 0, kept = 0;
    while (at < size) {
        if (link->left > 0) {
            size_t n = link->left < size - at ? (size_t)link->left : size - at;
            memmove(bytes + kept, bytes + at, n);
            kept += n;
            at += n;
            link->left -= n;
            continue;
        }
        link->front[link->front_size++] = bytes[at++];
        if (link->front_size < 2) continue;
        int length = link->front[1] & 0x7F, header = length < 126 ? 2 : length == 126 ? 4 : 10;
        errno = 0;
        if ((link->front[0] & 0x0F) > 2 || link->front[1] & 0x80) fail("a WebSocket frame that is no data");
        if (link->front_size < header) continue;
        link->left = length < 126 ? (uint64_t)length : length == 126 ? get_u16(link->front + 2) : get_u64(link->front + 2);
        link->front_size = 0;
    }
    return kept;
}

ssize_t link_recv_other(int descriptor, void *bytes, size_t size) {
    if (link_kind == LINK_TLS) return recv_tls(descriptor, bytes, size);
    ssize_t n = recv(descriptor, bytes, size, 0);
    if (n <= 0) return n;
    size_t kept = unwrap(websockets[descriptor], bytes, (size_t)n);
    if (kept > 0) return (ssize_t)kept;
    errno = EAGAIN;
    return -1;
}
