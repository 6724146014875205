#ifndef CPOSIX_H
#define CPOSIX_H

// What the C library has and its Swift overlay does not show: macros, and calls with variadic or odd signatures.

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#if defined(__linux__)
#include <sys/epoll.h>
#include <sys/eventfd.h>
#endif

/// The IP-level option that leaves the choice of the source port to connect(2), so that two sockets with
/// different targets may share one. Linux 4.2 and later.
static inline int32_t clamor_ip_bind_address_no_port(void) { return IP_BIND_ADDRESS_NO_PORT; }

/// A non-blocking TCP socket whose connect has begun; `source` may be NULL.
///
/// -1 on failure, with its error; `binding` tells whether bind(2) failed.
int clamor_begin_connect(
    const struct sockaddr *target, const struct sockaddr *source, socklen_t length, int *error, int *binding
);

/// The state of a connect that has begun: 0 if it is up, EALREADY if it goes on, else its error.
int clamor_ended_connect(int descriptor, const struct sockaddr *target, socklen_t length);

/// Whether this system has what the functions below need: Linux 5.11 and later.
int clamor_poll_is_available(void);

/// A set of descriptors to wait for, and a descriptor in it that other threads can make ready; -1 on failure.
int clamor_poll_open(int *bell);

/// Adds a descriptor, edge-triggered, or changes what is reported of it: with `writes` also that it takes bytes.
///
/// -1 on failure.
int clamor_poll_watch(int set, int descriptor, uint64_t key, int writes, int changes);

/// An event of a descriptor.
struct clamor_poll_event {
    uint64_t key;
    /// It takes bytes; there is something to read; the peer has ended, or an error.
    uint8_t writes, reads, ends;
};

/// Waits so many nanoseconds at most, without a limit if negative, and returns how many events there are.
int clamor_poll_wait(int set, struct clamor_poll_event *events, int most, int64_t nanoseconds);

/// A number of the calling thread that no other thread of the process has.
static inline uintptr_t clamor_thread_id(void) { return (uintptr_t)pthread_self(); }

/// Starts a thread with a name of at most 15 characters that stays in memory, and returns 0 or an error.
int clamor_start_thread(const char *name, void (*body)(void *), void *context);

/// Makes a descriptor of clamor_poll_open() ready.
void clamor_poll_ring(int bell);

/// Closes what clamor_poll_open() opened.
static inline void clamor_poll_close(int set, int bell) {
    close(set);
    close(bell);
}

/// Sends without SIGPIPE; with `more` the kernel holds the bytes back for those, or the FIN, that follow at once.
static inline ssize_t clamor_send(int descriptor, const void *bytes, size_t count, int more) {
#if defined(__linux__)
    return send(descriptor, bytes, count, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
#else
    return send(descriptor, bytes, count, 0);
#endif
}

/// Bytes that a client's socket takes beyond what the peer has room for. The kernel's own limit is megabytes: after a run
/// at QoS 0 a server would read for seconds what fast clients had sent.
enum { clamor_most_unsent = 128 << 10 };
static const int clamor_unsent_option = TCP_NOTSENT_LOWAT;

/// Switches off the delay of small writes; -1 on failure. Limits the unsent bytes where the kernel can.
int clamor_set_client_options(int descriptor);

/// Gives memory that is free in the heap back to the system, where the C library can.
static inline void clamor_return_free_memory(void) {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

/// CPU time of the calling thread in nanoseconds, user and system together.
static inline int64_t clamor_thread_cpu_nanoseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/// CLOCK_MONOTONIC in nanoseconds: the clock that NIODeadline reads.
static inline int64_t clamor_monotonic_nanoseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/// CLOCK_REALTIME in nanoseconds since 1970.
static inline int64_t clamor_realtime_nanoseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/// Has the kernel send `signal` to this process when its parent ends.
static inline int clamor_die_with_parent(int signal) { return prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0); }

// Memory with several owners: a count lies in front of it, and the last owner frees it. Owners may be on any thread.

#define CLAMOR_LEASE_HEADER 16

static inline long *clamor_lease_count(void *memory) { return (long *)((char *)memory - CLAMOR_LEASE_HEADER); }

/// Allocates memory with one owner.
static inline void *clamor_lease_allocate(size_t size) {
    char *block = malloc(CLAMOR_LEASE_HEADER + size);
    if (block == NULL) abort();
    *(long *)block = 1;
    return block + CLAMOR_LEASE_HEADER;
}

/// Adds an owner.
static inline void clamor_lease_retain(void *memory) {
    __atomic_fetch_add(clamor_lease_count(memory), 1, __ATOMIC_RELAXED);
}

/// Takes an owner away.
static inline void clamor_lease_release(void *memory) {
    if (__atomic_fetch_sub(clamor_lease_count(memory), 1, __ATOMIC_ACQ_REL) == 1) free(clamor_lease_count(memory));
}

/// Gives one owner memory of another size, with what the old one held.
static inline void *clamor_lease_reallocate(void *memory, size_t old_size, size_t new_size) {
    void *grown = clamor_lease_allocate(new_size);
    if (memory != NULL) {
        memcpy(grown, memory, old_size < new_size ? old_size : new_size);
        clamor_lease_release(memory);
    }
    return grown;
}

/// Offers memory to this thread's next clamor_lease_allocate_offered() of the same size; NULL withdraws the offer.
void clamor_lease_offer(void *memory, size_t size);

/// Becomes an owner of the memory on offer, once; without an offer, allocates.
void *clamor_lease_allocate_offered(size_t size);

#endif
