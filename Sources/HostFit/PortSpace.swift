import Measurement

/// The local ports that connect(2) may choose, and how many are left from one address to another.
///
/// Measured on Linux 6.18, equally for sockets bound to a source address with IP_BIND_ADDRESS_NO_PORT and for unbound
/// ones. A port is free for a source and a target if no other socket has the same four values. Sockets to other
/// targets, or from other addresses, do not matter. A port with a listener is skipped for every address.
package struct PortSpace: Hashable, Sendable {
    package var range: ClosedRange<UInt16>
    /// Ports of the range that only an explicit bind(2) gets.
    package var reserved: Set<UInt16> = []
    package var table = SocketTable()
    /// Listeners that the run itself will start on a port of the range.
    package var listenersToCome = 0
    package var timeWait = TimeWaitRule()

    package init(range: ClosedRange<UInt16>) { self.range = range }

    /// Parses net.ipv4.ip_local_port_range and ip_local_reserved_ports.
    package init?(range: String, reserved: String = "") {
        guard let range = HostFacts.portRange(range) else { return nil }
        self.range = range
        for part in reserved.split(whereSeparator: { $0 == "," || $0.isWhitespace }) {
            let bounds = part.split(separator: "-").compactMap { UInt16($0) }
            guard let first = bounds.first, let last = bounds.last, first <= last, last >= range.lowerBound,
                first <= range.upperBound
            else { continue }
            self.reserved.formUnion(max(first, range.lowerBound)...min(last, range.upperBound))
        }
    }

    /// Ports of the range that are not reserved.
    package var size: Int { self.range.count - self.reserved.count }

    /// The ports that one source has left to one target.
    struct Left: Hashable {
        /// Connects that certainly succeed.
        var count: Int
        /// Used by connections between the two.
        var inUse = 0
        /// Used by ended connections until their time has passed.
        var inTimeWait = 0
    }

    func free(_ route: Route?) -> Left {
        let passedOver = self.reserved.union(self.table.listening.filter(self.range.contains))
        var taken = passedOver
        var left = Left(count: 0)
        if let route, let target = route.target {
            let reuses = self.timeWait.applies(from: route.source, to: target)
            for socket in self.table.sockets
            where socket.remotePort == route.port && socket.remote == target
                && (route.source == nil || socket.local == route.source) && self.range.contains(socket.localPort)
            {
                if let age = socket.timeWaitAge, reuses, age > self.timeWait.delay { continue }
                guard taken.insert(socket.localPort).inserted else { continue }
                if socket.timeWaitAge == nil { left.inUse += 1 } else { left.inTimeWait += 1 }
            }
        }
        left.count = max(0, self.range.count - taken.count - self.listenersToCome)
        // The kernel searches an even number of ports from a random one, so it misses one end of an odd range.
        let ends = [self.range.lowerBound, self.range.upperBound]
        if self.range.count > 1, !self.range.count.isMultiple(of: 2), !ends.allSatisfy(taken.contains) {
            left.count = max(0, left.count - 1)
        }
        return left
    }
}

/// The conditions under which the kernel reuses a port in TIME_WAIT before its 60 s have passed.
package struct TimeWaitRule: Hashable, Sendable {
    /// net.ipv4.tcp_tw_reuse: 0 never, 1 always, 2 on loopback.
    package var reuse = 2
    /// net.ipv4.tcp_timestamps: without them there is no reuse.
    package var hasTimestamps = true
    /// Minimum age in milliseconds: net.ipv4.tcp_tw_reuse_delay, 1,000 on kernels without this setting.
    package var delay = 1_000

    /// In mode 2 one end on loopback is enough.
    ///
    /// The host's other addresses do not count, although they are as near.
    func applies(from source: IPAddress?, to target: IPAddress) -> Bool {
        guard self.hasTimestamps else { return false }
        return self.reuse == 1 || self.reuse == 2 && (target.isLoopback || source?.isLoopback == true)
    }
}

/// The route of one client: its source and its target.
package struct Route: Hashable, Sendable {
    /// `nil` if the kernel chooses.
    package var source: IPAddress?
    /// `nil` for a name that has not been resolved.
    package var target: IPAddress?
    package var port: UInt16
    /// Distinguishes targets with unknown addresses.
    package var name: String

    package init(source: IPAddress?, name: String, port: UInt16) {
        self.target = IPAddress(name == "localhost" ? "127.0.0.1" : name)
        self.source = source ?? self.target?.sourceOnLoopback
        self.name = self.target == nil ? name : ""
        self.port = port
    }
}

/// The routes that clients use in turn: client k uses route k modulo their number.
package struct RouteCycle: Hashable, Sendable {
    package var routes: [Route]

    package init(_ routes: [Route]) { self.routes = routes }

    /// Distinct source addresses; the kernel's choice counts as one.
    package var sources: Int { Set(self.routes.map(\.source)).count }

    /// The most clients that each find a port, and the route that runs out first.
    func largest(in ports: PortSpace) -> (clients: Int, scarcest: Route, left: PortSpace.Left)? {
        var places: [Route: [Int]] = [:]
        for (place, route) in self.routes.enumerated() { places[route, default: []].append(place) }
        let limits = places.map { route, places in
            let left = ports.free(route)
            // The first client without a port: this many whole rounds, and its position in the next.
            let (rounds, rest) = left.count.quotientAndRemainder(dividingBy: places.count)
            return (clients: rounds * self.routes.count + places[rest], scarcest: route, left: left)
        }
        return limits.min { $0.clients < $1.clients }
    }
}
