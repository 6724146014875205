import HostFit
import LoadEngine
import RunControl
import Scenario
import TestSupport
import Testing
import clamor

@Suite("Options of clamor plan")
struct PlanOptionsTests {
    private static func parse(_ line: String, _ groups: String, files: [String: String] = [:]) throws -> Invocation {
        let folder = try ScratchFolder()
        let file = try folder.write("target: mqtt://broker.example\nduration: 10s\ngroups:\n\(groups)", to: "f.yaml")
        for (name, text) in files { _ = try folder.write(text, to: name) }
        let place = folder.path("")
        let words = line.split(separator: " ").map { $0 == "FILE" ? file : String($0).replacing("DIR/", with: place) }
        return Invocation.parse(["plan"] + words)
    }

    private static let devices = "  devices: { clients: 900, publish: { qos: 1, rate: 300/s } }"

    @Test("a node has cores and memory in binary units, and the rest has its defaults")
    func options() throws {
        let line = "FILE --node 2.5c/512M --headroom 40% --lose 1 --watch-pid mosquitto --sessions 500"
        guard case .plan(let options) = try Self.parse(line, Self.devices) else { return #expect(Bool(false)) }
        #expect(options.node == FleetPlan.Node(cores: 2.5, memoryBytes: 512 * 1_048_576))
        #expect(options.headroom == 0.4 && options.losses == 1 && options.sessions == 500)
        #expect(options.processes == ["mosquitto"] && options.scenario?.groups.count == 1)
        guard case .plan(let usual) = try Self.parse("FILE --node 4c/8G --pid 12", Self.devices) else {
            return #expect(Bool(false))
        }
        #expect(usual.headroom == 0.3 && usual.losses == 0 && usual.sessions == 2_000 && usual.costs == nil)
    }

    struct Refused: Sendable, CustomTestStringConvertible {
        let line: String
        let words: String
        var groups = PlanOptionsTests.devices
        var testDescription: String { "\(self.line): \(self.words)" }
    }

    private static let refusals = [
        Refused(line: "FILE --watch-pid m", words: "--node: is missing; say what a node is, such as --node 4c/8G"),
        Refused(line: "FILE --node 4c/8G", words: "--watch-pid: is missing; give the server's process"),
        Refused(
            line: "FILE --node 4/8 --watch-pid m",
            words: "'4/8' is no node; write its cores and its memory like 4c/8G"
        ),
        Refused(line: "FILE --node 0c/8G --watch-pid m", words: "'0c/8G' is no node"),
        Refused(line: "FILE --node nanc/8G --watch-pid m", words: "'nanc/8G' is no node"),
        Refused(
            line: "FILE --node 4c/8G --headroom 96% --watch-pid m",
            words: "--headroom: leaves nothing for the load"
        ),
        Refused(line: "FILE --node 4c/8G --headroom 40 --watch-pid m", words: "'40' is not a share"),
        Refused(
            line: "FILE --node 4c/8G --watch-pid m",
            words: "devices: sends as fast as it can; give it a rate, which a plan needs",
            groups: "  devices: { clients: 9, publish: { qos: 1 } }"
        ),
        Refused(
            line: "FILE --node 4c/8G --watch-pid m",
            words: "has MQTT and XMPP groups, which are two servers",
            groups: Self.devices + "\n  chat: { target: 'xmpp://h', jid: 'u%i@h', password: p, clients: 2 }"
        ),
        Refused(
            line: "FILE --node 4c/8G --watch-pid m",
            words: "has groups with and without TLS",
            groups: Self.devices + "\n  secure: { target: 'mqtts://broker.example', clients: 2 }"
        ),
        Refused(
            line: "FILE --node 4c/8G --watch-pid m --target embedded",
            words: "--watch-pid: the load goes to the embedded broker; name the server with"
        ),
        Refused(
            line: "FILE --node 4c/8G --watch-pid m",
            words: "rooms: no cost is known of muc; leave the group out",
            groups:
                "  rooms: { target: 'xmpp://h', jid: 'u%i@h', password: p, muc: { rooms: 1, room_size: 2, rate: 1/s } }"
        ),
        Refused(
            line: "FILE --node 4c/8G --watch-pid m --costs DIR/known",
            words: "has costs already; take another file"
        ),
    ]

    @Test("what cannot be planned is refused in one line, with the remedy", arguments: refusals)
    func refused(_ refusal: Refused) throws {
        let lines: [String]
        switch try Self.parse(refusal.line, refusal.groups, files: ["known": "{}"]) {
        case .refused(let own), .wrong(let own): lines = own
        default: lines = []
        }
        #expect(lines.count == 1 && lines[0].contains(refusal.words), "\(lines)")
    }

    @Test("the demand of a fleet has its sessions, its messages at their QoS, and what it retains")
    func demand() throws {
        let groups = """
              a: { clients: 600, connect: { keep_alive: 60s }, publish: { topic: 'a/%i', qos: 1, size: 100, retain: true, rate: 120/s } }
              b: { clients: 3, subscribe: [{ filter: 'a/+', qos: 0 }] }
              c: { clients: 300, connect: { keep_alive: 30s } }
            """
        guard case .plan(let options) = try Self.parse("FILE --node 1c/1G --watch-pid m", groups),
            let scenario = options.scenario
        else { return #expect(Bool(false)) }
        var demand = ServerDemand()
        for group in scenario.work(of: .whole) { demand.add(group) }
        #expect(demand.sessions == 903 && demand[.session] == 903)
        #expect(demand[.in1] == 120 && demand[.passed] == 120 && demand[.out0] == 360 && demand[.out1] == 0)
        // Devices that publish every five seconds need no ping; those of c do.
        #expect(demand[.ping] == 10 + 3.0 / 300)
        #expect(demand[.byte] == 120 * 4 * 100)
        #expect(demand.retained == 600 && demand.retainedBytes == 60_000)
    }
}
