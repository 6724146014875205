import Measurement
import RunControl
import TestSupport
import Testing

@Suite("The examples of the guides, shortened, against a broker that hangs half-way")
struct GuideHangTests {
    private static let examples = GuideExample.all("pub", "pubsub")

    @Test("there are examples")
    func count() { #expect(Self.examples.count >= 10) }

    @Test("none of them succeeds", arguments: examples)
    func hangs(_ example: GuideExample) throws {
        let line = (example.words + ["-p", "1883", "-d", "4s", "--drain", "1s"]).joined(separator: " ")
        let run = try VirtualClamor.of(line, on: VirtualClamor.Host("--stall 10m@2s"))
        #expect([69, 99].contains(run.status), "\(run.errors)")
        #expect(run.record.books.allSatisfy { $0.balances && $0.lost ?? 0 == 0 }, "\(run.record.books)")
        #expect(run.record.books.contains { $0.outstanding ?? 0 > 0 }, "\(run.record.books)")
    }
}
