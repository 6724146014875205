package import Coordination

/// The options of `clamor coordinate`, read and checked.
package struct CoordinateOptions: Sendable {
    package var scenario: ScenarioOptions
    package var segments: Int
    /// Server watches that the begin waits for.
    package var watches = 0
    /// The host may be a name.
    package var listen = CoordinatorPlace(host: "127.0.0.1", port: CoordinatorPlace.usualPort)
    /// PEM files; `nil`: plain TCP.
    package var certificateFile: String?
    package var keyFile: String?
    /// `nil`: the password is made anew, and printed.
    package var credentials: CoordinationCredentials?
    /// Nanoseconds.
    package var joinTimeout: Int64 = CoordinatorOptions.usualJoinTimeout
    package var onLost = LostSegmentOption.abort
    /// The name that segments have to give too; empty if none is given.
    package var run = ""
}

package enum LostSegmentOption: String, Hashable, Sendable, CaseIterable {
    /// It ends.
    case abort
    /// It goes on, and is `unreconciled`.
    case `continue`
}

package struct CoordinatorPlace: Hashable, Sendable {
    package static let usualPort: UInt16 = 7_883

    package var host: String
    package var port: UInt16

    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Reads `HOST:PORT`, `HOST` or `[ADDRESS]:PORT`.
    package init?(_ text: some StringProtocol) {
        var (host, port) = (String(text), Optional(Self.usualPort))
        if let colon = text.lastIndex(of: ":"), !text.hasSuffix("]") {
            host = String(text[..<colon])
            port = UInt16(text[text.index(after: colon)...])
        }
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
        } else if host.contains(":") {
            return nil
        }
        guard let port, !host.isEmpty, !host.contains(where: { "/ @[]".contains($0) }) else { return nil }
        self.init(host: host, port: port)
    }

    package var text: String { self.host.contains(":") ? "[\(self.host)]:\(self.port)" : "\(self.host):\(self.port)" }
}

/// The options of `clamor watch`, read and checked.
package struct WatchOptions: Sendable {
    package var coordinator: CoordinatorOptions
    package var live: LiveOptions
    /// The name of the run; empty: any.
    package var run: String
    package var quiet: Bool
}

/// A segment's way to its coordinator.
package struct CoordinatorOptions: Hashable, Sendable {
    package static let usualJoinTimeout: Int64 = 120_000_000_000

    package var place: CoordinatorPlace
    package var isSecure: Bool
    package var authorityFile: String?
    package var credentials: CoordinationCredentials?
    /// Nanoseconds.
    package var joinTimeout = Self.usualJoinTimeout
}
