import Foundation
import Ledger
import Testing
import Workloads

@Suite("The ledger's header in the body of a message")
struct XMPPBodyTests {
    private static let headers: [PayloadHeader] = [
        PayloadHeader(run: 0, publisher: 0, flags: 0, sequence: 0, due: 0),
        PayloadHeader(run: .max, publisher: .max, flags: .max, sequence: .max, due: -1),
        PayloadHeader(run: 0xDEAD_BEEF, publisher: 77, flags: 4, sequence: 1 << 40, due: 1_800_000_000_123_456_789),
    ]

    private func bytes(_ header: PayloadHeader) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: PayloadHeader.size)
        bytes.withUnsafeMutableBytes { memory in
            guard let base = memory.baseAddress else { return }
            PayloadHeader.write(
                to: base,
                run: header.run,
                publisher: header.publisher,
                flags: header.flags,
                sequence: header.sequence,
                due: header.due
            )
        }
        return bytes
    }

    private func encode(_ header: [UInt8], over text: [UInt8]? = nil) -> [UInt8] {
        var result = text ?? [UInt8](repeating: 0, count: XMPPBody.headerSize)
        header.withUnsafeBytes { header in
            result.withUnsafeMutableBytes { memory in
                guard let from = header.baseAddress, let to = memory.baseAddress else { return }
                if text == nil { XMPPBody.encode(from, to: to) } else { XMPPBody.patch(from, to: to) }
            }
        }
        return result
    }

    private func read(_ body: [UInt8]) -> PayloadHeader? {
        body.withUnsafeBytes { XMPPBody.header(of: $0) }
    }

    @Test("[RFC 4648 §4] is standard base64", arguments: headers)
    func base64(_ header: PayloadHeader) {
        let text = self.encode(self.bytes(header))
        #expect(String(decoding: text, as: UTF8.self) == Data(self.bytes(header)).base64EncodedString())
        #expect(self.read(text) == header)
        #expect(self.read(text + Array("and more".utf8)) == header)
    }

    @Test("is patched where the messages of a client differ", arguments: headers)
    func patch(_ header: PayloadHeader) {
        var other = header
        other.sequence = 4_711
        other.due = 42
        other.flags = 8
        let patched = self.encode(self.bytes(other), over: self.encode(self.bytes(header)))
        #expect(patched == self.encode(self.bytes(other)))
    }

    @Test("is not found in bodies of other clients", arguments: ["", "hello", String(repeating: "A", count: 44)])
    func foreign(_ text: String) {
        #expect(self.read(Array(text.utf8)) == nil)
    }

    @Test("[RFC 4648 §3.3] a character outside the alphabet is refused, wherever it stands")
    func alphabet() {
        let text = self.encode(self.bytes(Self.headers[2]))
        for index in 0..<XMPPBody.headerSize - 1 {
            for wrong in ["<", " ", "=", "\u{7F}"].flatMap(\.utf8) {
                var damaged = text
                damaged[index] = wrong
                #expect(self.read(damaged) == nil, "\(wrong) at \(index)")
            }
        }
        #expect(self.read(text.dropLast()) == nil)
    }
}
