import LoopContext
import MQTT
import MQTTCodec
import NIOCore
import NIOEmbedded
import SASL

/// A client's connection and session between a server that sends what it likes and an owner that makes use of it.
///
/// Runs on a channel without a socket, in virtual time. A model beside it knows which packet identifiers are taken.
package final class SessionTarget: FuzzTarget {
    package static var layout: FuzzInput.Layout { .program }
    package private(set) var reached = Reached()
    package private(set) var signature: UInt64 = 0

    /// Few for most inputs, for what one more brings grows slower than what it costs.
    private static func steps(_ input: UnsafeRawBufferPointer) -> Int { input[2] >> 4 == 0 ? 40 : 12 }

    private let loop = EmbeddedEventLoop()
    private let context: LoopContext

    package init() { self.context = LoopContext(eventLoop: self.loop) }

    package func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
        self.reached.inputs += 1
        guard input.count > FuzzInput.settingsCount else { return }
        let life = SessionLife(input, loop: self.loop, context: self.context)
        defer { life.tearDown() }
        try life.connect()
        var walk = ProgramWalk(UnsafeRawBufferPointer(rebasing: input[FuzzInput.settingsCount...]))
        var left = Self.steps(input)
        while left > 0, let step = walk.next() {
            left -= 1
            switch step {
            case .feed(_, let bytes): life.receive(bytes)
            case .call(let code, let argument): try life.call(code, argument)
            }
            try life.check()
        }
        try life.finish()
        self.note(life)
    }

    private func note(_ life: SessionLife) {
        var signature: UInt64 = 0
        for type in life.observer.packets.indices {
            self.reached.packets[type] += life.observer.packets[type]
            if life.observer.packets[type] > 0 { signature |= 1 << UInt64(type) }
        }
        if life.observer.packets.contains(where: { $0 > 0 }) { self.reached.withPacket += 1 }
        for (index, count) in life.observer.events.enumerated() where count > 0 {
            self.reached.note(SessionEvent.allCases[index].rawValue, count)
            signature |= 1 << UInt64(16 + index)
        }
        for end in life.observer.ends {
            switch end {
            case .malformed(let error):
                self.reached.note(error)
                signature |= 1 << UInt64(50 + ErrorKind(error).rawValue % 8)
            case .answered: self.reached.note("end: answered")
            case .refused: self.reached.note("end: refused")
            case .notAuthenticated: self.reached.note("end: not authenticated")
            case .sessionKept: self.reached.note("end: session kept")
            case .connackTimedOut: self.reached.note("end: no CONNACK")
            case .pingTimedOut: self.reached.note("end: no PINGRESP")
            case .closedByPeer: self.reached.note("end: closed by peer")
            case .disconnected: self.reached.note("end: DISCONNECT")
            case .violation: self.reached.note("end: violation")
            case .insecure: self.reached.note("end: insecure")
            case .failed: self.reached.note("end: failed")
            case .aborted: self.reached.note("end: aborted")
            }
        }
        self.signature = signature
    }
}
