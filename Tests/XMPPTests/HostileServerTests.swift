import NIOCore
import TestSupport
import Testing
import XMPP

@Suite("Hostile servers", .timeLimit(.minutes(10)))
struct HostileServerTests {
    /// Server streams, cut roughly into elements.
    private static let pieces: [[UInt8]] = Conversation.all.flatMap { conversation in
        conversation.steps.flatMap { step -> [[UInt8]] in
            guard case .server(let bytes) = step else { return [] }
            return bytes.split(separator: UInt8(ascii: "<")).map { [UInt8(ascii: "<")] + $0 }
        }
    }

    private static func mutate(_ bytes: [UInt8], _ numbers: inout SeededGenerator) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 1...3, using: &numbers) where !bytes.isEmpty {
            let at = Int.random(in: 0..<bytes.count, using: &numbers)
            let end = min(bytes.count, at + Int.random(in: 1...24, using: &numbers))
            switch Int.random(in: 0..<5, using: &numbers) {
            case 0: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &numbers)
            case 1: bytes.removeSubrange(at..<end)
            case 2: bytes.insert(contentsOf: bytes[at..<end], at: at)
            case 3: bytes.insert(contentsOf: Self.pieces.randomElement(using: &numbers) ?? [], at: at)
            default: bytes[at] = UInt8.random(in: 0...255, using: &numbers)
            }
        }
        return bytes
    }

    @Test("whatever a server says, the client neither traps nor hangs, and ends once", arguments: Conversation.all)
    func mutated(_ conversation: Conversation) throws {
        for seed in 0..<40 as Range<UInt64> {
            var numbers = SeededGenerator(seed: seed &* 7_919 &+ UInt64(conversation.size))
            let rig = try ConnectionRig(try conversation.options(), account: try conversation.account)
            rig.start(within: .seconds(30), isSecure: conversation.settings["secure"] == "yes")
            for step in conversation.steps {
                switch step {
                case .server(let bytes):
                    let isMutated = Int.random(in: 0..<3, using: &numbers) == 0
                    try rig.receive(isMutated ? Self.mutate(bytes, &numbers) : bytes)
                case .handshake:
                    rig.observer.tls?(.success(()))
                    rig.observer.tls = nil
                case .passes(let time): rig.advance(time)
                case .finish: rig.connection.finish()
                default: break
                }
                // Nothing that a server says makes this side say much.
                #expect(try rig.sent().utf8.count < 20_000)
            }
            rig.advance(.seconds(60))
            rig.channel.close(promise: nil)
            let ends = rig.observer.calls.count { if case .ended = $0 { true } else { false } }
            #expect(ends == 1, "\(conversation.name), seed \(seed)")
        }
    }

    @Test("[RFC 6120 §13.12] an endless element, or one without end in depth, is refused at its limit")
    func limits() throws {
        let options = ConnectionRig.options {
            $0.limits.stanzaBytes = 10_000
            $0.limits.depth = 20
        }
        let long = try ConnectionRig.ready(options)
        try long.receive("<message><body>")
        for _ in 0..<20 { try long.receive(String(repeating: "x", count: 1_000)) }
        #expect(long.end == .malformed(.stanzaTooLarge(limit: 10_000)))
        #expect(try long.sent().contains("<policy-violation"))
        let deep = try ConnectionRig.ready(options)
        try deep.receive(String(repeating: "<a>", count: 1_000))
        #expect(deep.end == .malformed(.tooDeep(limit: 20)))
    }

    @Test("requests without end are answered one each, and nothing is kept of them")
    func flood() throws {
        let rig = try ConnectionRig.ready()
        for _ in 0..<1_000 { try rig.receive("<iq type='get' id='q' from='a@b'><x xmlns='y'/></iq>") }
        #expect(try rig.writes().count == 1_000)
        #expect(rig.pendingRequests == 0)
        for _ in 0..<1_000 { try rig.receive("<iq type='result' id='00000000000000009' from='a@b'/>") }
        #expect(try rig.writes().isEmpty)
        #expect(rig.end == nil)
    }
}
