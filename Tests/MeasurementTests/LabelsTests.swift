import Foundation
import Testing

import Measurement

@Suite("Labels and moments")
struct LabelsTests {
    @Test("are sorted by key, whatever order they came in")
    func sorted() {
        let labels: Labels = ["qos": "1", "leg": "puback"]
        #expect(labels.description == "leg=puback;qos=1")
        #expect(labels == ["leg": "puback", "qos": "1"])
        #expect(labels["qos"] == "1")
        #expect(labels["stage"] == nil)
        #expect(labels.adding("kind", "x").description == "kind=x;leg=puback;qos=1")
        #expect(labels.adding("qos", "2").description == "leg=puback;qos=2")
        #expect(labels.contains(["qos": "1"]) && !labels.contains(["qos": "2"]) && labels.contains([:]))
        #expect(Labels() < labels && labels < ["qos": "0"])
    }

    @Test("are read back from their description", arguments: ["", "a=1", "a=1;b=x=y", "kind=connack 0x87"])
    func parse(_ text: String) {
        #expect(Labels(parsing: text)?.description == text)
    }

    @Test("refuse what is not key=value", arguments: ["a", "=1", "a=1;b", "a=1;a=2"])
    func refuse(_ text: String) {
        #expect(Labels(parsing: text) == nil)
    }

    @Test(
        "moments are RFC 3339, as Foundation writes them",
        arguments: [0, 951_782_399, 951_782_400, 1_709_164_800, 1_795_225_030, 4_107_542_400, 4_102_444_799]
    )
    func wallClock(_ seconds: Int64) {
        let style = Date.ISO8601FormatStyle(timeZone: .gmt)
        let expected = Date(timeIntervalSince1970: Double(seconds)).formatted(style).replacing("Z", with: ".000123Z")
        #expect(WallClock.rfc3339(seconds * 1_000_000_000 + 123_456) == expected)
    }
}
