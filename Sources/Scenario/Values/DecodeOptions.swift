import MQTTCodec
import Report
package import Workloads

package enum DecodeProtocol: String, CaseIterable, Sendable {
    case mqtt, xmpp
}

/// The consumer of the decoded packets.
package enum DecodeSink: String, CaseIterable, Sendable {
    case view, copy
}

/// The options of `clamor decode`, read and checked.
package struct DecodeOptions: Hashable, Sendable, HasResults, OptionsRoot {
    package static let usual = Self()

    // The stream.
    package var `protocol` = DecodeProtocol.mqtt
    /// The protocol level on the wire: 3 (3.1), 4 (3.1.1) or 5.
    package var protocolLevel: UInt8 = 5
    package var sizes = [256]
    package var topic = "clamor/%i"
    package var qualities: [UInt8] = [0]
    package var isMix = false
    package var seed: UInt64?

    // How it reaches the decoder.
    package var forms = DecodeForm.allCases
    package var paths = DecodePath.allCases
    /// Bytes of one read at most, over a socket.
    package var readSize = 65_536
    package var sink = DecodeSink.view

    /// Nanoseconds of each form on each path, the warm-up apart.
    package var duration: Int64 = 2_000_000_000

    package var results = ResultOptions()

    package init() {}

    /// Sizes of a realistic mix: a reading, an event, a document, a batch.
    package static let mixSizes = [16, 64, 256, 1_024, 4_096]
    /// Sizes of what people write to each other.
    package static let chatSizes = [8, 24, 60, 150, 600]

    package var isXMPP: Bool { self.protocol == .xmpp }
    package var protocolName: String { self.protocol.rawValue }
    package var copies: Bool { self.sink == .copy }

    package var lanes: [DecodeLane] {
        self.paths.flatMap { path in self.forms.map { DecodeLane($0, path, of: self.protocolName) } }
    }

    /// Caches need no longer than a second, however long the run is.
    package var warmup: Int64 { min(self.duration / 10, 1_000_000_000) }

    package func stream(seed: UInt64, atLeast size: Int) -> DecodeStream {
        if self.isXMPP {
            return DecodeStream(XMPPStreamPlan(sizes: self.sizes, isMix: self.isMix, seed: seed), atLeast: size)
        }
        let plan = DecodeStreamPlan(
            version: ProtocolVersion(rawValue: self.protocolLevel) ?? .v5,
            topic: Template(parsing: self.topic),
            sizes: self.sizes,
            qualities: self.qualities.compactMap(QoS.init(rawValue:)),
            isMix: self.isMix,
            seed: seed
        )
        return DecodeStream(plan, atLeast: size)
    }
}
