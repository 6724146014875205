/// Costs per client and per message, measured on Linux 6.18, x86-64, with a release build; every use states them.
///
/// CPU is user and system time of the whole process. Single figures of a run differ from these by some 10 % on the host
/// where they were measured, and by up to half on another. `results/reference/cost.md` has most of them beside plain C's.
package struct ClientCosts: Hashable, Sendable {
    // MARK: Bytes

    /// Bytes in this process: a resident idle MQTT client (2.9 KiB, of 15,000).
    package var client: UInt64 = 3_072
    /// The addition for an XMPP session (3.7 KiB in all, of 10,000).
    package var stream: UInt64 = 768
    /// The addition for TLS (24.0 KiB, of 15,000).
    package var tls: UInt64 = 24_576
    /// A TCP socket in the kernel, with its inode, file, directory entry and epoll entry.
    package var socket: UInt64 = 4_096
    /// A client in the embedded broker (2.7 KiB).
    package var brokerClient: UInt64 = 3_072
    /// A process without clients (45 to 46 MiB).
    package var process: UInt64 = 46 << 20
    /// The addition for the metrics of each group (5 to 7 MiB).
    package var group: UInt64 = 5 << 20
    /// The addition for those of a group's messages, acknowledgements and deliveries (6 to 15 MiB).
    package var messages: UInt64 = 9 << 20

    // MARK: CPU-µs

    /// A client's connect and its end, where the loop has no time to sleep (150 to 180).
    package var connect = 150.0
    /// The addition for a TLS 1.3 handshake, P-256, verified.
    package var handshake = 615.0
    /// An XMPP client's login with PLAIN, and its end; SCRAM costs more, by the server's iterations.
    package var login = 390.0
    /// Events of a connect, and of a login, that find a loop of slow connects asleep: 280 µs at 1,000/s, 400 at 250/s.
    package var connectEvents = 4.0
    /// A message in a write of its own, mostly in the kernel.
    package var sent = 10.0
    /// A message in a read of its own.
    package var delivered = 10.0
    /// An acknowledgement in a read of its own.
    package var answer = 5.0
    /// An acknowledgement that is written with others.
    package var acknowledged = 8.0
    /// A stanza, sent or received (28.7 for both).
    package var stanza = 14.0
    /// The addition for each TLS record.
    package var record = 8.0
    /// A ping of the keep-alive, with its answer.
    package var ping = 14.0
    /// A client's share of the work that each second has.
    package var idle = 2.0
    /// An event loop that sleeps is woken by a due time or by an answer (35 to 85, the
    /// more the longer it slept).
    package var wakeup = 50.0
    /// The start of a process, and its result files.
    package var start = 85_000.0
    /// The addition for the conversation with a coordinator, and the result files that it fetches.
    package var conversation = 200_000.0
}
