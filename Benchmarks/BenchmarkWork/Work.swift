/// A piece of work that is measured: the suites time it, the gate counts its instructions and its bytes.
///
/// Both measure the same function, so a figure of the one explains a figure of the other.
package struct Work: Sendable {
    /// The areas of the code, one suite each.
    package enum Suite: String, CaseIterable, Sendable, Codable {
        case mqttCodec = "MQTTCodec"
        case xmppCodec = "XMPPCodec"
        case session = "Session"
        case engine = "Engine"
        case report = "Report"
    }

    package let suite: Suite
    package let name: String
    /// Packets, records or whatever else one call of the body does; figures are per one of them.
    package let operations: Int
    /// Whether the figures depend on this repository, its packages and the toolchain alone.
    ///
    /// Work that calls zlib does not: another build of that library needs other instructions for the same bytes.
    package let isGated: Bool
    /// Builds what the work needs, and gives the body: called again and again, it does the same each time.
    package let make: @Sendable () -> () -> Void

    init(
        _ suite: Suite,
        _ name: String,
        operations: Int,
        isGated: Bool = true,
        make: @escaping @Sendable () -> () -> Void
    ) {
        self.suite = suite
        self.name = name
        self.operations = operations
        self.isGated = isGated
        self.make = make
    }

    package static let all = codec + xmppCodec + sessions + engine + reports

    package static func all(of suite: Suite) -> [Work] { self.all.filter { $0.suite == suite } }

    package static func named(_ name: String) -> Work? { (self.all + self.proofs).first { $0.name == name } }
}

/// Takes a result, so that the work which made it cannot be left out.
@inline(never)
@_optimize(none)
package func keep<Value>(_: borrowing Value) {}

/// Calls the body so many times; the gate's tool counts between entry and return of this function.
///
/// A plain loop: a range would bring metadata along, allocated with the first use.
@inline(never)
package func measuredRounds(_ rounds: Int, _ body: () -> Void) {
    var left = rounds
    while left > 0 {
        body()
        left -= 1
    }
}

/// A value at a place of its own, as the product keeps the state of its clients in slabs.
///
/// In a captured variable or in a class each access would be checked for exclusivity, which the product's are not.
final class Place<Value: ~Copyable> {
    let pointer: UnsafeMutablePointer<Value>

    init(_ value: consuming Value) {
        self.pointer = .allocate(capacity: 1)
        self.pointer.initialize(to: value)
    }

    deinit {
        self.pointer.deinitialize(count: 1)
        self.pointer.deallocate()
    }
}
