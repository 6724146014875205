import Foundation
import MQTT
import StoreVictim
import Testing
import TestSupport

@Suite("A client whose process is killed", .enabled(if: Mosquitto.isInstalled, Comment(rawValue: Mosquitto.missing)))
struct StoreProofTests {
    /// The reports of one life of the process.
    private struct Life {
        var found = 0
        var released = 0
        var isResumed: Bool?
        var acknowledged = 0

        init(_ lines: [String]) {
            for line in lines {
                let words = line.split(separator: " ")
                switch words.first {
                case "found":
                    self.found = Int(words[1]) ?? 0
                    self.released = Int(words[5]) ?? 0
                case "connected,": self.isResumed = words.last == "true"
                case "acknowledged": self.acknowledged += 1
                default: Issue.record("\(line)")
                }
            }
        }
    }

    @Test(
        "[MQTT-4.4.0-1] 50 kills at random moments: every QoS 2 message once, every QoS 1 message at least once, in order",
        arguments: ["5", "3.1.1"]
    )
    func kills(_ version: String) async throws {
        let folder = try ScratchFolder()
        let path = folder.path("db")
        try await Mosquitto.with { broker in
            try await broker.withSubscriber(["-q", "2", "-i", "reader", "-t", "proof/#", "-F", "%t %p"]) { reader in
                let lives = try await self.kill(50, ["publish", "\(broker.port)", version, path])
                let ending = try await StoreProcess.start(["finish", "\(broker.port)", version, path]).ended()
                #expect(ending.outputLines.last == "finished")

                // It was in the midst of it nearly always, and the server knew the session.
                #expect(lives.count { $0.found > 0 } > 40)
                #expect(lives.count { $0.released > 0 } > 5)
                #expect(lives.compactMap(\.isResumed).dropFirst().allSatisfy { $0 })
                #expect(lives.compactMap(\.isResumed).first == false)

                let end = try broker.client("mosquitto_pub", ["-q", "2", "-t", "proof/end", "-m", "0"])
                #expect(try await end.ended().status == 0)
                let lines = try await reader.lines { $0.last == "proof/end 0" }
                let accepted = try String(contentsOfFile: "\(path).log", encoding: .utf8).split(separator: "\n")
                self.check(lines, last: accepted.compactMap { Int($0) }.max() ?? 0)
            }
        }
    }

    private func kill(_ times: Int, _ arguments: [String]) async throws -> [Life] {
        var dice = StoreDice(state: 4)
        var lives: [Life] = []
        for _ in 0..<times {
            // Before it has found anything, right behind the connect, or at any acknowledgement after that; where
            // exactly between two lines is up to the machine.
            let count = [0, 1, 2, 3, 10, 50, 200, 400][dice.roll(8)] + dice.roll(10)
            let victim = try StoreProcess.start(arguments)
            try await victim.lines { $0.count >= count }
            victim.send(SIGKILL)
            let ending = try await victim.ended()
            #expect(ending.status == -SIGKILL)
            lives.append(Life(ending.outputLines))
        }
        return lives
    }

    /// All numbers up to the last that the store took have to have come.
    private func check(_ lines: [String], last: Int) {
        func numbers(_ topic: String) -> [Int] {
            lines.compactMap { $0.hasPrefix(topic) ? Int($0.dropFirst(topic.count)) : nil }
        }
        #expect(last > 1000)
        let even = numbers("proof/2 ")
        let odd = numbers("proof/1 ")
        #expect(Self.missing(stride(from: 2, through: last, by: 2), in: even) == [])
        #expect(Self.missing(stride(from: 1, through: last, by: 2), in: odd) == [])
        #expect(Self.descents(even) == [], "at QoS 2 each comes once, and in order")
        var seen: Set<Int> = []
        #expect(Self.descents(odd.filter { seen.insert($0).inserted }) == [])
    }

    private static func missing(_ expected: StrideThrough<Int>, in numbers: [Int]) -> [Int] {
        let all = Set(numbers)
        return expected.filter { !all.contains($0) }
    }

    /// Where a number is not above the one before it.
    private static func descents(_ numbers: [Int]) -> [[Int]] {
        zip(numbers, numbers.dropFirst()).filter { $0 >= $1 }.map { [$0, $1] }
    }
}
