package import NIOCore

/// The address families of a name to connect to, and the one that is tried first.
package enum AddressPreference: Hashable, Sendable, CaseIterable {
    /// IPv6 and IPv4 in turn, as RFC 8305 §4 expects.
    case ipv6First
    /// IPv4 and IPv6 in turn.
    case ipv4First
    case ipv4Only
    case ipv6Only

    /// Whether addresses of this family may be used.
    func admits(_ family: NIOBSDSocket.ProtocolFamily) -> Bool {
        switch self {
        case .ipv6First, .ipv4First: family == .inet || family == .inet6
        case .ipv4Only: family == .inet
        case .ipv6Only: family == .inet6
        }
    }

    /// The admitted addresses in the order to try them.
    ///
    /// The families alternate, so that a broken one delays each connect by one attempt at most (RFC 8305 §4). Within
    /// a family the resolver's order stays.
    package func order(_ addresses: [SocketAddress]) -> [SocketAddress] {
        let ipv4 = addresses.filter { $0.protocol == .inet }
        let ipv6 = addresses.filter { $0.protocol == .inet6 }
        return switch self {
        case .ipv6First: Self.alternate(ipv6, ipv4)
        case .ipv4First: Self.alternate(ipv4, ipv6)
        case .ipv4Only: ipv4
        case .ipv6Only: ipv6
        }
    }

    private static func alternate(_ first: [SocketAddress], _ second: [SocketAddress]) -> [SocketAddress] {
        var order: [SocketAddress] = []
        for index in 0..<max(first.count, second.count) {
            if index < first.count { order.append(first[index]) }
            if index < second.count { order.append(second[index]) }
        }
        return order
    }

    /// The reason why a host without an admitted address cannot be connected to.
    var missing: String {
        switch self {
        case .ipv6First, .ipv4First: "no address"
        case .ipv4Only: "no IPv4 address, and no other is allowed"
        case .ipv6Only: "no IPv6 address, and no other is allowed"
        }
    }
}

/// A library's public enum with the cases of ``AddressPreference``.
package protocol AddressChoice: Equatable {
    static var ipv6First: Self { get }
    static var ipv4First: Self { get }
    static var ipv4Only: Self { get }
    static var ipv6Only: Self { get }
}

extension AddressPreference: AddressChoice {
    init(_ choice: some AddressChoice) {
        self =
            switch choice {
            case .ipv6First: .ipv6First
            case .ipv4First: .ipv4First
            case .ipv4Only: .ipv4Only
            default: .ipv6Only
            }
    }
}

/// The way to connect to a name with several addresses: overlapping attempts (Happy Eyeballs, RFC 8305).
package struct AddressRacing: Hashable, Sendable {
    /// RFC 8305 §5: recommended Connection Attempt Delay.
    package static let usualDelay = TimeAmount.milliseconds(250)
    /// RFC 8305 §5: an attempt gets at least 10 ms, and holds up the next one for at most 2 s.
    package static let delays = TimeAmount.milliseconds(10)...TimeAmount.seconds(2)

    package let preference: AddressPreference
    /// The time from the start of an attempt to the start of the next one.
    package let delay: TimeAmount

    /// - Parameters:
    ///   - preference: the families to use.
    ///   - delay: time between two attempts; brought into ``delays``.
    package init(_ preference: AddressPreference = .ipv6First, delay: TimeAmount = AddressRacing.usualDelay) {
        self.preference = preference
        self.delay = min(max(delay, Self.delays.lowerBound), Self.delays.upperBound)
    }
    /// The usual delay, with the families that an application chose.
    package init(choice: some AddressChoice) { self.init(AddressPreference(choice)) }
}
