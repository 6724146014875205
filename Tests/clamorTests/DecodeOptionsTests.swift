import RunControl
import Scenario
import Testing
import Workloads
import clamor

@Suite("A decode's command line becomes options")
struct DecodeOptionsTests {
    private func options(_ line: String) throws -> DecodeOptions {
        let invocation = Invocation.parse(line.split(separator: " ").map(String.init))
        guard case .decode(let options) = invocation else {
            Issue.record("'\(line)' gives \(invocation)")
            throw CancellationError()
        }
        return options
    }

    @Test("the defaults are those of the other commands; all forms on both paths")
    func defaults() throws {
        let options = try options("decode")
        #expect(options.protocolLevel == 5)
        #expect(options.sizes == [256])
        #expect(options.qualities == [0])
        #expect(options.topic == "clamor/%i")
        #expect(!options.isMix)
        #expect(!options.copies)
        #expect(options.readSize == 65_536)
        #expect(options.duration == 2_000_000_000)
        #expect(options.lanes.count == 8)
        #expect(options.redactedCommand == ["clamor", "decode"])
    }

    @Test("sizes are a list, repeated, or both; a mix has sizes and QoS of its own")
    func sizes() throws {
        #expect(try options("decode -s 64,256 -s 1KiB").sizes == [64, 256, 1_024])
        let mix = try options("decode --mix")
        #expect(mix.isMix)
        #expect(mix.sizes == DecodeOptions.mixSizes)
        #expect(mix.qualities == [0, 1, 2])
        let own = try options("decode --mix -s 9 -q 2")
        #expect(own.sizes == [9])
        #expect(own.qualities == [2])
    }

    @Test("forms and paths come in one order, each once")
    func lanes() throws {
        let options = try options("decode --form cuts,pipelined,cuts --path socket")
        #expect(options.lanes == [DecodeLane(.pipelined, .socket), DecodeLane(.cuts, .socket)])
    }

    @Test("stanzas have sizes of their own in a mix, and lanes of their protocol")
    func xmpp() throws {
        let options = try options("decode --protocol xmpp --mix --form cuts --path memory")
        #expect(options.isXMPP)
        #expect(options.sizes == DecodeOptions.chatSizes)
        #expect(options.lanes == [DecodeLane(.cuts, .memory, of: "xmpp")])
        #expect(try self.options("decode --protocol xmpp").sizes == [256])
        #expect(try self.options("decode --protocol xmpp --mix -s 5").sizes == [5])
        #expect(try !self.options("decode --protocol mqtt").isXMPP)
    }
}
