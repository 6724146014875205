/// The TCP sockets of the network namespace that keep local ports from being chosen.
package struct SocketTable: Hashable, Sendable {
    package struct Socket: Hashable, Sendable {
        package var local: IPAddress
        package var localPort: UInt16
        package var remote: IPAddress
        package var remotePort: UInt16
        /// Milliseconds since it entered TIME_WAIT; `nil` in any other state.
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

    /// Ports with a listener on any address.
    package var listening: Set<UInt16> = []
    /// All other sockets.
    package var sockets: [Socket] = []

    /// Adds the sockets of /proc/net/tcp or /proc/net/tcp6 whose local port is one of `ports`.
    ///
    /// There may be tens of thousands, read before every large run, so fields are ranges of the text and never arrays.
    package mutating func add(procNetTCP text: String, ports: ClosedRange<UInt16>) {
        var text = text
        text.withUTF8 { bytes in
            var start = bytes.firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? bytes.count
            while start < bytes.count {
                let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
                self.add(bytes[start..<end], ports)
                start = end + 1
            }
        }
    }

    private mutating func add(_ line: Slice<UnsafeBufferPointer<UInt8>>, _ ports: ClosedRange<UInt16>) {
        // sl, local, remote, state, queues, timer:when, ...
        var rest = line
        _ = Self.field(&rest, until: UInt8(ascii: " "))
        guard let (local, localPort) = Self.endpoint(&rest), ports.contains(localPort),
            let (remote, remotePort) = Self.endpoint(&rest)
        else { return }
        let state = Self.field(&rest, until: UInt8(ascii: " "))
        let queues = Self.field(&rest, until: UInt8(ascii: " "))
        if queues.isEmpty { return }
        if Hexadecimal.number(state) == Self.listen {
            self.listening.insert(localPort)
            return
        }
        var socket = Socket(local: local, localPort: localPort, remote: remote, remotePort: remotePort)
        let timer = Self.field(&rest, until: UInt8(ascii: ":"))
        let left = Self.field(&rest, until: UInt8(ascii: " "))
        // The timer decides and not the state: the kernel also shortens a FIN_WAIT2 that then waits in the same way.
        if Hexadecimal.number(timer) == Self.timeWaitTimer, !left.isEmpty, let left = Hexadecimal.number(left) {
            socket.timeWaitAge = max(0, Self.timeWaitTicks - Int(clamping: left)) * 10
        }
        self.sockets.append(socket)
    }

    private static let listen: UInt64 = 10
    private static let timeWaitTimer: UInt64 = 3
    /// TCP_TIMEWAIT_LEN, fixed at 60 s, in hundredths of a second: /proc uses this unit for any kernel HZ.
    private static let timeWaitTicks = 6_000

    private static func endpoint(_ rest: inout Slice<UnsafeBufferPointer<UInt8>>) -> (IPAddress, UInt16)? {
        let digits = Self.field(&rest, until: UInt8(ascii: ":"))
        let number = Self.field(&rest, until: UInt8(ascii: " "))
        guard !number.isEmpty, let address = IPAddress(procNet: digits), let port = Hexadecimal.number(number)
        else { return nil }
        return UInt16(exactly: port).map { (address, $0) }
    }

    /// Returns the text before `separator`, after blanks, and consumes the separator.
    private static func field(
        _ rest: inout Slice<UnsafeBufferPointer<UInt8>>,
        until separator: UInt8
    ) -> Slice<UnsafeBufferPointer<UInt8>> {
        rest = rest.drop { $0 == UInt8(ascii: " ") }
        let field = rest.prefix { $0 != separator }
        rest = rest[field.endIndex...].dropFirst()
        return field
    }
}
