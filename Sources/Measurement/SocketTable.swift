/// The TCP sockets of the network namespace, as far as they keep a local port from being chosen.
package struct SocketTable: Hashable, Sendable {
    package struct Socket: Hashable, Sendable {
        package var local: IPAddress
        package var localPort: UInt16
        package var remote: IPAddress
        package var remotePort: UInt16
        /// Milliseconds since it entered TIME_WAIT; `nil` for a socket in any other state.
        package var timeWaitAge: Int?

        package init(
            local: IPAddress,
            localPort: UInt16,
            remote: IPAddress,
            remotePort: UInt16,
            timeWaitAge: Int? = nil
        ) {
            self.local = local
            self.localPort = localPort
            self.remote = remote
            self.remotePort = remotePort
            self.timeWaitAge = timeWaitAge
        }
    }

    /// Ports that somebody listens on, on whatever address.
    package var listening: Set<UInt16> = []
    /// All others.
    package var sockets: [Socket] = []

    package init() {}

    /// Adds the sockets of /proc/net/tcp or /proc/net/tcp6 whose local port is one of `ports`.
    package mutating func add(procNetTCP text: String, ports: ClosedRange<UInt16>) {
        for line in text.utf8.split(separator: UInt8(ascii: "\n")).dropFirst() {
            self.add(line, ports)
        }
    }

    private mutating func add(_ line: Substring.UTF8View, _ ports: ClosedRange<UInt16>) {
        // sl, local, remote, state, queues, timer:when, ...
        let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 6)
        guard fields.count > 5, let (local, localPort) = Self.endpoint(fields[1]), ports.contains(localPort),
            let (remote, remotePort) = Self.endpoint(fields[2])
        else { return }
        if Hexadecimal.number(fields[3]) == Self.listen {
            self.listening.insert(localPort)
            return
        }
        var socket = Socket(local: local, localPort: localPort, remote: remote, remotePort: remotePort)
        let timer = fields[5].split(separator: UInt8(ascii: ":"))
        // The timer, not the state, tells: a FIN_WAIT2 that the kernel has cut down waits in the same way.
        if timer.count == 2, Hexadecimal.number(timer[0]) == Self.timeWaitTimer, let left = Hexadecimal.number(timer[1])
        {
            socket.timeWaitAge = max(0, Self.timeWaitTicks - Int(clamping: left)) * 10
        }
        self.sockets.append(socket)
    }

    private static let listen: UInt64 = 10
    private static let timeWaitTimer: UInt64 = 3
    /// TCP_TIMEWAIT_LEN, 60 s and no setting, in hundredths of a second: /proc counts so whatever the kernel's HZ.
    private static let timeWaitTicks = 6_000

    private static func endpoint(_ field: Substring.UTF8View) -> (IPAddress, UInt16)? {
        let parts = field.split(separator: UInt8(ascii: ":"))
        guard parts.count == 2, let address = IPAddress(procNet: parts[0]), let port = Hexadecimal.number(parts[1])
        else { return nil }
        return UInt16(exactly: port).map { (address, $0) }
    }
}
