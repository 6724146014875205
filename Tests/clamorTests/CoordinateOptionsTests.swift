import Coordination
import Foundation
import LoadEngine
import RunControl
import Scenario
import TestSupport
import Testing
import clamor

@Suite("A coordinator and its segments on the command line")
struct CoordinateOptionsTests {
    private static let scenario = """
        name: fleet
        target: mqtt://127.0.0.1:1
        seed: 7
        groups:
          all: { clients: 10, publish: { topic: "t/%i", qos: 1, rate: 10/s } }
        thresholds:
          - "publish_ack_duration p99 < 5ms abort"
        min_clients: 90%
        """

    private func parse(_ line: String, password: String? = "secret") throws -> Invocation {
        let folder = try ScratchFolder()
        let file = try folder.write(Self.scenario, to: "fleet.yaml")
        let words = line.split(separator: " ").map { $0 == "FILE" ? file : String($0) }
        let environment = password.map { ["CLAMOR_COORDINATOR_PASSWORD": $0, "CLAMOR_RUN": "nightly"] } ?? [:]
        return Invocation.parse(words, environment: environment)
    }

    private func refusal(_ line: String, password: String? = "secret") throws -> [String] {
        switch try self.parse(line, password: password) {
        case .refused(let lines), .wrong(let lines): return lines
        default: return []
        }
    }

    @Test("the coordinator has its place, its users, and the number of segments")
    func coordinate() throws {
        let line =
            "coordinate FILE --segments 3 --listen 10.0.0.1:99 --user segment --on-lost continue --join-timeout 5m"
        guard case .coordinate(let options) = try self.parse(line) else { return #expect(Bool(false)) }
        #expect(options.segments == 3 && options.listen == CoordinatorPlace(host: "10.0.0.1", port: 99))
        #expect(options.credentials == CoordinationCredentials(user: "segment", password: "secret"))
        #expect(options.onLost == .continue && options.joinTimeout == 300_000_000_000 && options.run == "nightly")
        #expect(options.scenario.common.leastClients == .share(0.9))
        #expect(options.scenario.common.thresholds.count == 1)
    }

    @Test("a watch has its servers and its coordinator, under either name")
    func watch() throws {
        for line in [
            "watch --pid mosquitto --join mqtts://a@h:1", "watch --watch-pid mosquitto --coordinator mqtts://a@h:1",
        ] {
            guard case .watch(let options) = try self.parse(line) else { return #expect(Bool(false)) }
            #expect(options.live.processes == ["mosquitto"] && options.run == "nightly" && !options.quiet)
            #expect(options.coordinator.isSecure && options.coordinator.place == CoordinatorPlace(host: "h", port: 1))
            #expect(options.coordinator.credentials == CoordinationCredentials(user: "a", password: "secret"))
        }
        guard case .coordinate(let options) = try self.parse("coordinate FILE --segments 2 --watches 3") else {
            return #expect(Bool(false))
        }
        #expect(options.watches == 3)
    }

    @Test("with a watch, and in segments, objectives on the server need no other")
    func serverObjectives() throws {
        let objective = ["--threshold", "server_memory_bytes < 1GiB"]
        func problems(_ line: String) throws -> [String] {
            let folder = try ScratchFolder()
            let file = try folder.write(Self.scenario, to: "fleet.yaml")
            let words = line.split(separator: " ").map { $0 == "FILE" ? file : String($0) } + objective
            let environment = ["CLAMOR_COORDINATOR_PASSWORD": "secret"]
            if case .refused(let lines) = Invocation.parse(words, environment: environment) { return lines }
            return []
        }
        #expect(try problems("coordinate FILE --segments 2 --watches 1").isEmpty)
        #expect(try problems("run FILE --coordinator h:1 --segment 1/2").isEmpty)
        #expect(try problems("coordinate FILE --segments 2").first?.contains("needs --watch-pid NAME") == true)
        #expect(try problems("run FILE").first?.contains("needs --watch-pid NAME") == true)
    }

    @Test("a segment has the plan of its coordinator, and takes its seed")
    func segment() throws {
        guard let whole = try self.parse("run FILE").scenario,
            let options = try self.parse("run FILE --coordinator mqtts://a@h:1 --segment 2/3").scenario,
            case .coordinate(let coordinate) = try self.parse("coordinate FILE --segments 3")
        else { return #expect(Bool(false)) }
        let coordinator = try #require(options.common.segment.coordinator)
        #expect(coordinator.isSecure && coordinator.place == CoordinatorPlace(host: "h", port: 1))
        #expect(coordinator.credentials == CoordinationCredentials(user: "a", password: "secret"))
        #expect(options.common.segment.part == PlanSegment(index: 1, of: 3))
        // Of the file, which both have.
        #expect(options.common.seed == 7 && coordinate.scenario.common.seed == 7)
        #expect(options.common.segment.run == "nightly")
        #expect(options.scheduleHash == coordinate.scenario.scheduleHash && options.scheduleHash == whole.scheduleHash)
    }

    @Test("the password alone is enough; without one the coordinator makes it, wherever it listens")
    func credentials() throws {
        let segment = CoordinationCredentials(user: "segment", password: "secret")
        for place in ["127.0.0.1:1", "0.0.0.0:1"] {
            let line = "coordinate FILE --segments 3 --listen \(place)"
            guard case .coordinate(let given) = try self.parse(line),
                case .coordinate(let made) = try self.parse(line, password: nil)
            else { return #expect(Bool(false)) }
            #expect(given.credentials == segment)
            #expect(made.credentials == nil)
        }
        guard let options = try self.parse("run FILE --coordinator h --segment 1/3").scenario else {
            return #expect(Bool(false))
        }
        #expect(options.common.segment.coordinator?.credentials == segment)
    }

    @Test("processes of a host have the clients of its segment")
    func processes() throws {
        let line = "run FILE --coordinator h --segment 2/3 --processes 2"
        guard let options = try self.parse(line).scenario else { return #expect(Bool(false)) }
        let segment = options.common.segment
        #expect(segment.processes?.count == 2)
        let arguments = (0..<2).map { index in
            segment.processes?.arguments(of: index, in: segment.part, seed: 5, threads: 1, directory: "d") ?? []
        }
        for (words, place) in zip(arguments, ["2/6", "5/6"]) {
            #expect(words.contains(place) && !words.contains("--coordinator") && !words.contains("--processes"))
        }
    }

    struct Refused: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let words: String
        var password: String? = "secret"

        init(_ line: String, _ words: String, password: String? = "secret") {
            self.testDescription = line
            self.words = words
            self.password = password
        }
    }

    static let refused = [
        Refused("coordinate FILE", "--segments: is missing"),
        Refused("watch --join h:1", "--watch-pid: is missing; give the server's process"),
        Refused("watch --pid m", "--coordinator: is missing; give the address of 'clamor coordinate'"),
        Refused("watch --pid m --join h:1", "needs a password", password: nil),
        Refused("watch --pid a/b --join h:1", "'a/b' is neither a process identifier nor a name"),
        Refused("coordinate FILE --segments 2 --listen h:x", "'h:x' is no address"),
        Refused("coordinate FILE --segments 2 --user u", "needs a password", password: nil),
        Refused("coordinate FILE --segments 2 --certfile c.pem", "needs its private key"),
        Refused("coordinate FILE --segments 11", "11 segments of -c 10 would not have a client each"),
        Refused("coordinate FILE --segments 2 --segment 1/2", "--segment"),
        Refused("run FILE --coordinator h", "needs --segment"),
        Refused("run FILE --coordinator http://h --segment 1/2", "is no coordinator"),
        Refused("run FILE --coordinator u:p@h --segment 1/2", "is no coordinator"),
        Refused("run FILE --coordinator u@h --segment 1/2", "needs a password", password: nil),
        Refused("run FILE --coordinator 127.0.0.1 --segment 1/2", "needs a password", password: nil),
        Refused("run FILE --coordinator h --segment 1/2 --seed 3", "gives all segments its own"),
        Refused("run FILE --coordinator h --segment 1/2 --start-at 2000000000", "says when the run begins"),
        Refused("run FILE --coordinator h --segment 1/2 --coordinator-cafile c", "mqtts://"),
        Refused("run FILE --segment 1/2 --seed 3", "abort asks of the whole run"),
        Refused("run FILE --segment 1/2 --seed 3 --processes 2", "starts the segments itself"),
    ]

    @Test("what contradicts itself is refused in words that name the option", arguments: refused)
    func refuses(_ refused: Refused) throws {
        let lines = try self.refusal(refused.testDescription, password: refused.password)
        #expect(lines.contains { $0.contains(refused.words) }, "\(lines)")
        #expect(lines.allSatisfy { !$0.contains("secret") })
    }

    @Test(
        "the place of a coordinator",
        arguments: [
            ("h", "h", 7_883), ("h:1", "h", 1), ("10.0.0.1:99", "10.0.0.1", 99), ("[::1]:5", "::1", 5),
            ("[::1]", "::1", 7_883),
        ] as [(String, String, UInt16)]
    )
    func place(_ text: String, _ host: String, _ port: UInt16) {
        let place = CoordinatorPlace(text)
        #expect(place == CoordinatorPlace(host: host, port: port))
    }

    @Test("texts that are no place", arguments: ["", ":1", "h:", "h:65536", "::1", "a b:1", "u@h:1", "h/x:1"])
    func noPlace(_ text: String) {
        #expect(CoordinatorPlace(text) == nil)
    }
}
