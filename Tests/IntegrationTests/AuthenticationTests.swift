import Foundation
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("Credentials of clients, from the command line")
    struct AuthenticationTests {
        private static let users = """
            ann:sesame
            bob:with:colon
            user1:pw1
            user2:pw2
            user3:pw3
            """

        private static func refusal(_ run: ClamorRun, _ code: String, clients: Int = 2) {
            #expect(run.status == 69, "\(run.ending.errors)")
            #expect(run.ending.errorLines.count == 1, "\(run.ending.errors)")
            #expect(run.ending.errors.contains("(\(code))"), "\(run.ending.errors)")
            #expect(run.record.errors.map(\.kind) == ["connack \(code)"])
            #expect(run.record.errors.first?.count == UInt64(clients))
            #expect(run.record.state == .aborted)
        }

        @Test(
            "[MQTT-4.12.0-1] --auth: SCRAM with the right password connects, with a wrong one or none it does not",
            arguments: ["scram-sha-256", "scram-sha-1"]
        )
        func scram(_ method: String) async throws {
            let folder = try ScratchFolder()
            let users = try folder.write(Self.users, to: "users")
            let (_, broker) = try await BrokerProgram.with("--users \(users) --auth \(method)") { broker in
                let line = "conn -p \(broker.port) -c 2 --duration 50ms"
                for flags in ["-u ann -P sesame", "-u bob -P with:colon", "-n 1 -u user%i -P pw%i"] {
                    let right = try await ClamorRun.of("\(line) --auth \(method) \(flags)")
                    #expect(right.status == 0, "\(right.ending.errors)")
                    #expect(right.ending.errors.isEmpty)
                    #expect(right.record.errors.isEmpty)
                    #expect(right.record.duration("connect_duration", ["phase": "session"])?.count == 2)
                    let file = try String(contentsOfFile: "\(right.directory)/run.json", encoding: .utf8)
                    #expect(!file.contains("sesame"))
                }
                for flags in ["-u ann -P Sesame", "-u eve -P sesame"] {
                    Self.refusal(try await ClamorRun.of("\(line) --auth \(method) \(flags)"), "0x87")
                }
                let other = method == "scram-sha-1" ? "scram-sha-256" : "scram-sha-1"
                for flags in ["--auth \(other) -u ann -P sesame", "-u ann -P sesame", ""] {
                    Self.refusal(try await ClamorRun.of("\(line) \(flags)"), "0x8c")
                }
                // [MQTT-3.1.4-2] of 3.1.1: no mechanism, and no code for it.
                Self.refusal(try await ClamorRun.of("\(line) -V 4 -u ann -P sesame"), "0x05")
            }
            #expect(broker.connects == 6)
            #expect(broker.connectsRefused == 12)
        }

        @Test("--users alone takes a password, in any version or either mechanism, and refuses other clients")
        func password() async throws {
            let folder = try ScratchFolder()
            let users = try folder.write(Self.users, to: "users")
            let (_, broker) = try await BrokerProgram.with("--users \(users)") { broker in
                let line = "conn -p \(broker.port) -c 2 --duration 50ms"
                for flags in ["-V 4", "-V 5", "--auth scram-sha-1", "--auth scram-sha-256"] {
                    let run = try await ClamorRun.of("\(line) \(flags) -u ann -P sesame")
                    #expect(run.status == 0, "\(run.ending.errors)")
                }
                Self.refusal(try await ClamorRun.of("\(line) -u ann -P Sesame"), "0x86")
                Self.refusal(try await ClamorRun.of("\(line) -V 4 -u ann -P Sesame"), "0x04")
                Self.refusal(try await ClamorRun.of(line), "0x87")
            }
            #expect(broker.connects == 8)
            #expect(broker.connectsRefused == 6)
        }

        @Test("the embedded broker takes its users from --broker")
        func embedded() async throws {
            let folder = try ScratchFolder()
            let users = try folder.write(Self.users, to: "users")
            let flags = "--users \(users) --auth scram-sha-256"
            let line = "pubsub -h embedded -c 3 -q 0,1,2 -L 30 --auth scram-sha-256 -u user%i"
            let right = try await ClamorRun.of("\(line) -P pw%i --broker", flags)
            #expect(right.status == 0, "\(right.ending.errors)")
            #expect(right.record.perQoS("delivery_expected") == [10, 10, 10])
            #expect(right.record.perQoS("delivery_lost") == [0, 0, 0])
            Self.refusal(try await ClamorRun.of("\(line) -P pw --broker", flags), "0x87", clients: 6)
        }

        /// OpenSSL's result: Base64(HMAC-SHA1(key, message)).
        private static func signature(_ message: String, key: String) async throws -> String {
            let ending = try await RunningProgram(
                "/bin/sh",
                ["-c", "printf %s \"$0\" | openssl dgst -sha1 -hmac \"$1\" -binary | openssl base64", message, key]
            ).ended()
            #expect(ending.status == 0, "\(ending.errors)")
            return ending.outputLines.first ?? ""
        }

        struct Account: Sendable, CustomTestStringConvertible {
            let testDescription: String
            let user: String
            /// The signed message.
            let message: String
            let flags: String
            let clients: Int
        }

        static let accounts = [
            Account(
                testDescription: "the old signature, of the group",
                user: "LTAI4key",
                message: "GID_fleet",
                flags: "",
                clients: 3
            ),
            Account(
                testDescription: "the new one, of the client",
                user: "Signature|LTAI4key|post-cn-0pp12345678",
                message: "GID_fleet@@@p-conn-1",
                flags: "--instance-id post-cn-0pp12345678",
                clients: 1
            ),
        ]

        @Test(
            "[SPEC A14] --auth aliyun signs as OpenSSL does: mosquitto accepts this name with this signature only",
            .enabled(if: Mosquitto.isInstalled, Comment(rawValue: Mosquitto.missing)),
            arguments: accounts
        )
        func aliyun(_ account: Account) async throws {
            let password = try await Self.signature(account.message, key: "kept secret")
            #expect(password.count == 28)
            let folder = try ScratchFolder()
            let file = folder.path("passwords")
            let made = try await RunningProgram(
                "/usr/bin/env",
                ["mosquitto_passwd", "-c", "-b", file, account.user, password]
            ).ended()
            #expect(made.status == 0, "\(made.errors)")
            // For the user that mosquitto becomes.
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
            try await Mosquitto.with(listener: ["password_file \(file)"]) { broker in
                let line =
                    "conn -p \(broker.port) -c \(account.clients) --duration 50ms --prefix p --auth aliyun "
                    + "--group-id GID_fleet -u LTAI4key \(account.flags) -P"
                for version in ["4", "5"] {
                    let run = try await ClamorRun.of(line, "kept secret", "-V", version)
                    #expect(run.status == 0, "\(run.ending.errors)")
                }
                // A keep-alive that the service takes, and its form of client ids.
                for client in 1...account.clients {
                    let id = "GID_fleet@@@p-conn-\(client)"
                    for level in 4...5 {
                        let words = " as \(id) (p\(level == 4 ? 2 : 5), c1, k60, u'\(account.user)')"
                        try await broker.program.line(on: .errors) { $0.contains(words) }
                    }
                }
                Self.refusal(try await ClamorRun.of(line, "kept Secret"), "0x87", clients: account.clients)
                Self.refusal(try await ClamorRun.of(line, "kept Secret", "-V", "4"), "0x05", clients: account.clients)
            }
        }

        @Test("[SPEC A14] --token-file sends the tokens instead of a signature")
        func tokens() async throws {
            let folder = try ScratchFolder()
            let users = try folder.write("Token|LTAI4key|post-cn-1:R|ab==|W|cd==\n", to: "users")
            let (_, broker) = try await BrokerProgram.with("--users \(users)") { broker in
                let line =
                    "conn -p \(broker.port) -c 2 --duration 50ms --auth aliyun --group-id G -u LTAI4key "
                    + "--instance-id post-cn-1 --token-file"
                let right = try folder.write("R|ab==\nW|cd==\n", to: "right")
                let run = try await ClamorRun.of("\(line) \(right)")
                #expect(run.status == 0, "\(run.ending.errors)")
                let wrong = try folder.write("R|ab==\n", to: "wrong")
                Self.refusal(try await ClamorRun.of("\(line) \(wrong)"), "0x86")
            }
            #expect(broker.connects == 2)
        }
    }
}
