import Foundation
import TestSupport
import Testing

extension Integration {
    /// A planted secret is looked for in everything that a command leaves or shows.
    @Suite("A secret appears nowhere but where it was given")
    struct SecretTests {
        struct Way: CustomTestStringConvertible, Sendable {
            let line: String
            var environment: [String] = []
            /// The scenario `FILE` and the file `OTHER`.
            var scenario = ""
            var other = ""
            /// Whether its text is wrong, so that the secret could be in the words of a refusal.
            var isRefused = false
            var testDescription: String {
                let parts = [self.environment.joined(separator: " "), self.line, self.scenario, self.other]
                return parts.filter { !$0.isEmpty }.joined(separator: " | ")
            }

            init(
                _ line: String,
                environment: [String] = [],
                _ scenario: String = "",
                other: String = "",
                isRefused: Bool = false
            ) {
                self.line = line
                self.environment = environment
                self.scenario = scenario
                self.other = other
                self.isRefused = isRefused
            }
        }

        private static let conn = "conn -h embedded -c 2 --duration 300ms"
        private static let xmpp = "-h 127.0.0.1 -p 1 --jid u%i@localhost --tls off -c 1"
        /// A scenario of one group, whose clients only hold their connections.
        private static func group(_ keys: String, target: String? = "embedded", top: String = "") -> String {
            let server = target.map { "    target: \($0)\n" } ?? ""
            return "duration: 300ms\n\(top)groups:\n  a:\n\(server)    clients: 2\n\(keys)"
        }
        private static let login = "    username: me\n    password: "

        static let options: [Way] = [
            Way("\(conn) -u me -P SECRET"), Way("\(conn) -u me -P SECRET --processes 2"),
            Way("\(conn) -u me -P SECRET --summary full"), Way("\(conn) -u me -P SECRET --json"),
            Way("\(conn) -u me -P SECRET --per-client --junit DIR/j.xml --summary-md DIR/s.md"),
            Way("\(conn) -u me", environment: ["CLAMOR_PASSWORD=SECRET"]),
            Way("\(conn) -u me --processes 2", environment: ["CLAMOR_PASSWORD=SECRET"]),
            Way("\(conn) -u me --password-file OTHER", other: "SECRET\n"),
            Way("\(conn) --raw SECRET"), Way("\(conn) --raw @OTHER", other: "SECRET"),
            Way("pub -h embedded -c 1 -L 3 -u me -P SECRET"),
            Way("sub -h embedded -c 1 --duration 200ms -u me -P SECRET"),
            Way("pubsub -h embedded -c 1 -L 3 -u me -P SECRET"),
            Way("conn -h 127.0.0.1 -p 1 -c 1 --duration 200ms -u me -P SECRET --auth scram-sha-256"),
            Way("conn --url mqtt://me:SECRET@127.0.0.1:1 -c 1 --duration 200ms"),
            Way("conn --url wss://me:SECRET@127.0.0.1:1/mqtt -c 1 --duration 200ms"),
            Way("conn -h 127.0.0.1 -p 1 --ws --path /mqtt?token=SECRET -c 1 --duration 200ms"),
            Way("conn -h 127.0.0.1 -p 1 --ws --header Authorization:SECRET -c 1 --duration 200ms"),
            Way("conn -h 127.0.0.1 -p 1 -S --psk me:SECRET -c 1 --duration 200ms"),
            Way("xmpp login \(xmpp) --password SECRET --duration 200ms"),
            Way("xmpp message \(xmpp) --password SECRET -L 2"), Way("xmpp register \(xmpp) --password SECRET"),
            Way("xmpp ping \(xmpp) --processes 1 -L 2", environment: ["CLAMOR_PASSWORD=SECRET"]),
            Way("\(conn) -u me -P SECRET --thresholds SECRET", isRefused: true),
            Way("\(conn) -u me -P SECRET -P SECRET --qos SECRET", isRefused: true),
        ]

        static let files: [Way] = [
            Way("run FILE", group("\(login)SECRET\n")), Way("run FILE --processes 2", group("\(login)SECRET\n")),
            Way("run FILE --check", group("\(login)SECRET\n")), Way("run FILE --json", group("\(login)SECRET\n")),
            Way("run FILE --set PW=SECRET", group("\(login)${PW}\n")),
            Way("run FILE --set PW=SECRET --check", group("\(login)${PW}\n")),
            Way("run FILE --set PW=SECRET --processes 2", group("\(login)${PW}\n")),
            Way("run FILE", group("\(login)${PW}\n", top: "vars: {PW: SECRET}\n")),
            Way("run FILE --set PW=SECRET --set Q=x", group("\(login)${PW}${Q}\n")),
            Way("run FILE", environment: ["CLAMOR_PASSWORD=SECRET"], group("    username: me\n")),
            Way("run FILE", group("    username: me\n    password_file: OTHER\n"), other: "SECRET"),
            Way("run FILE", group("    psk: me:SECRET\n", target: "mqtts://127.0.0.1:1")),
            Way("run FILE", group("", target: "mqtt://me:SECRET@127.0.0.1:1")),
            Way("run FILE --target mqtt://me:SECRET@127.0.0.1:1", group("", target: nil)),
            Way("run FILE", group("    path: /mqtt?token=SECRET\n", target: "ws://127.0.0.1:1")),
            Way(
                "run FILE --set T=SECRET",
                group("    headers: \"Authorization: ${T}\"\n", target: "ws://127.0.0.1:1")
            ),
            Way(
                "run FILE",
                group("    jid: u%i@localhost\n    password: SECRET\n    ping: {}\n", target: "xmpp://127.0.0.1:1")
            ),
            Way(
                "run FILE --set PW=SECRET",
                group("    jid: u%i@localhost\n    password: ${PW}\n    ping: {}\n", target: "xmpp://127.0.0.1:1")
            ),
            Way("run FILE", group("\(login)[SECRET]\n"), isRefused: true),
            Way("run FILE", group("\(login)SECRET\n    clients: many\n"), isRefused: true),
            Way("doctor FILE --set PW=SECRET", group("\(login)${PW}\n")),
            Way(
                "init --slurm FILE --segments 2 --set PW=SECRET --out DIR/s.sbatch",
                group("\(login)${PW}\n"),
                isRefused: true
            ),
            Way(
                "init --slurm FILE --segments 2 --out DIR/s.sbatch",
                environment: ["PW=SECRET"],
                group("\(login)${PW}\n")
            ),
            Way(
                "init --kubernetes FILE --segments 2 --out DIR/k.yaml",
                environment: ["PW=SECRET"],
                group("\(login)${PW}\n")
            ),
            Way("run FILE --repeat 2 --against PW=SECRET", group("\(login)${PW:-x}\n")),
        ]

        /// The processes that have it in their arguments, without the one whose user gave it there.
        private static func arguments(with secret: String, without pid: Int32) -> [String] {
            let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
            return processes.compactMap(Int32.init).filter { $0 != pid }.compactMap { process in
                // Between fork and exec a child still has the arguments that the user gave the program.
                guard let data = FileManager.default.contents(atPath: "/proc/\(process)/cmdline"),
                    data != FileManager.default.contents(atPath: "/proc/\(pid)/cmdline")
                else { return nil }
                let words = String(decoding: data, as: UTF8.self).replacingOccurrences(of: "\0", with: " ")
                return words.contains(secret) ? "\(process): \(words)" : nil
            }
        }

        @Test("given in one of more than 40 ways", arguments: options + files)
        func appearsNowhere(_ way: Way) async throws {
            let folder = try ScratchFolder()
            // Hexadecimal, so that it is a key and raw bytes as well; runs beside this one have others.
            let secret = UUID().uuidString.lowercased().filter { $0 != "-" }
            func filled(_ text: String) -> String {
                text.replacingOccurrences(of: "SECRET", with: secret)
                    .replacingOccurrences(of: "DIR", with: folder.path("out"))
                    .replacingOccurrences(of: "OTHER", with: folder.path("given/other"))
                    .replacingOccurrences(of: "FILE", with: folder.path("given/s.yaml"))
            }
            try FileManager.default.createDirectory(atPath: folder.path("given"), withIntermediateDirectories: true)
            try FileManager.default.createDirectory(atPath: folder.path("out"), withIntermediateDirectories: true)
            _ = try folder.write(filled(way.scenario), to: "given/s.yaml")
            _ = try folder.write(filled(way.other), to: "given/other")
            var words = way.environment.map(filled) + [ClamorBinary.path]
            words += way.line.split(separator: " ").map { filled(String($0)) }
            let hasResults = !["doctor", "init"].contains { way.line.hasPrefix($0) } && !way.line.contains("--check")
            if hasResults { words += ["--out", folder.path("out/results")] }
            let program = try RunningProgram("/usr/bin/env", words)
            while !program.hasEnded {
                // The arguments of its children are sampled while it runs; no event is awaited here.
                #expect(Self.arguments(with: secret, without: program.pid) == [])
                try await Task.sleep(for: .milliseconds(30))
            }
            let ending = try await program.ended()
            #expect(!ending.output.contains(secret), "\(ending.output)")
            #expect(!ending.errors.contains(secret), "\(ending.errors)")
            let files = FileManager.default.enumerator(atPath: folder.path("out"))?.compactMap { $0 as? String } ?? []
            for file in files {
                guard let data = FileManager.default.contents(atPath: folder.path("out/\(file)")) else { continue }
                #expect(data.range(of: Data(secret.utf8)) == nil, "\(file)")
            }
            #expect(way.isRefused == [64, 65].contains(ending.status), "\(ending.status) \(ending.errors)")
            if hasResults, !way.isRefused { #expect(files.contains { $0.hasSuffix("/run.json") }) }
        }

        @Test("there are more than 40")
        func count() { #expect((Self.options + Self.files).count > 40) }
    }
}
