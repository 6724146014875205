import EmbeddedBroker
import Measurement
import RunControl
import TestSupport
import Testing

@Suite("Servers that refuse")
struct FailureRunTests {
    /// MQTT 3.1.1 table 3.1, MQTT 5 table 3-1.
    static let refusals: [(version: Int, code: Int)] =
        (1...5).flatMap { [(3, $0), (4, $0)] }
        + [
            0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C, 0x90, 0x95, 0x97, 0x99, 0x9A,
            0x9B, 0x9C, 0x9D, 0x9F,
        ].map { (5, $0) }

    @Test("every refusal of CONNACK is 69 and named by its code", arguments: refusals)
    func refusal(_ refusal: (version: Int, code: Int)) throws {
        let code = "0x" + (refusal.code < 16 ? "0" : "") + String(refusal.code, radix: 16)
        let run = try VirtualClamor.of(
            "conn -h embedded -V \(refusal.version) -c 2 --duration 1s --broker",
            "--refuse \(code)"
        )
        #expect(run.status == 69)
        #expect(run.errorLines.count == 1)
        #expect(run.errors.lowercased().contains("(\(code))"))
        #expect(run.record.errors.count == 1)
        #expect(run.record.errors.first?.kind.hasPrefix("connack ") == true)
        #expect(run.record.errors.first?.count == 2)
        #expect(run.record.state == .aborted)
    }
}
