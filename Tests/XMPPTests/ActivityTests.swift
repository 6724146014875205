import NIOCore
import Testing
import XMPP

@Suite("Client state indication")
struct ActivityTests {
    private static let inactive = "<inactive xmlns='urn:xmpp:csi:0'/>"
    private static let active = "<active xmlns='urn:xmpp:csi:0'/>"

    @Test("[XEP-0352 §4.2] a state goes out once, is no stanza, and only where it is offered")
    func tells() throws {
        let handler = ActivityHandler { _ in true }
        let rig = try ConnectionRig.resumable([handler])
        #expect(handler.set(.active, in: rig.module))
        #expect(try rig.sent() == "")
        for _ in 0..<2 { #expect(handler.set(.inactive, in: rig.module)) }
        #expect(try rig.sent() == Self.inactive)
        #expect(handler.set(.active, in: rig.module))
        #expect(try rig.sent() == Self.active)
        #expect(rig.unacknowledged == 0)

        let other = ActivityHandler { _ in false }
        let silent = try ConnectionRig.ready(modules: [other])
        #expect(!other.set(.inactive, in: silent.module))
        #expect(try silent.sent() == "")
    }

    @Test("[XEP-0352 §5.2] every stream begins active, so an inactive client says so again", arguments: [0, nil])
    func again(_ resumed: Int?) throws {
        let handler = ActivityHandler { _ in true }
        let rig = try ConnectionRig.resumable([handler])
        _ = handler.set(.inactive, in: rig.module)
        let next = try rig.reconnected([handler], resumed: resumed)
        #expect(try next.sent() == Self.inactive)
        _ = handler.set(.active, in: next.module)
        _ = try next.sent()
        let last = try next.reconnected([handler], resumed: nil)
        #expect(try last.sent() == "")
    }

    @Test("[XEP-0352] a state that is set without a connection is told by the next stream")
    func withoutConnection() throws {
        let handler = ActivityHandler { _ in true }
        #expect(!handler.set(.inactive, in: nil))
        let rig = try ConnectionRig.resumable([handler])
        rig.channel.close(promise: nil)
        #expect(!handler.set(.inactive, in: nil))
        #expect(handler.state == .inactive)
        let next = try rig.reconnected([handler], resumed: nil)
        #expect(try next.sent() == Self.inactive)
    }
}
