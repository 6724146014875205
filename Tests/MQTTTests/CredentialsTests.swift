import EmbeddedBroker
import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite("Credentials")
struct CredentialsTests {
    @Test("are what was given, or nothing")
    func plain() throws {
        #expect(try MQTTCredentials.none.fields(clientID: "c", keepAlive: 0) == MQTTCredentials.Fields())
        #expect(
            try MQTTCredentials.password(user: "u", "p\u{E9}").fields(clientID: "c", keepAlive: 0)
                == MQTTCredentials.Fields(userName: "u", password: [0x70, 0xC3, 0xA9])
        )
        #expect(
            try MQTTCredentials.password(user: nil, [0, 0xFF]).fields(clientID: "c", keepAlive: 0)
                == MQTTCredentials.Fields(password: [0, 0xFF])
        )
    }

    @Test("[MQTT-1.5.6] do not fit with more than 65,535 bytes")
    func tooLong() throws {
        let full = MQTTCredentials.password(
            user: String(repeating: "u", count: 65_535),
            [UInt8](repeating: 0, count: 65_535)
        )
        #expect(try full.fields(clientID: "c", keepAlive: 0).password?.count == 65_535)
        #expect(throws: MQTTCredentialsError.tooLong(.userName, bytes: 65_536)) {
            try MQTTCredentials.password(user: String(repeating: "u", count: 65_536), nil)
                .fields(clientID: "c", keepAlive: 0)
        }
        #expect(throws: MQTTCredentialsError.tooLong(.password, bytes: 65_536)) {
            try MQTTCredentials.password(user: "u", [UInt8](repeating: 0, count: 65_536))
                .fields(clientID: "c", keepAlive: 0)
        }
    }

    @Test(
        "[SPEC A14] sign the group, with the access key for user name",
        arguments: [("GID_test@@@0001", "7s7KTrjYpV6QqvpQU9tAgXOpkn0=")]
    )
    func groupSignature(_ clientID: String, _ password: String) throws {
        // printf GID_test | openssl dgst -sha1 -hmac secret -binary | base64
        let account = MQTTAlibabaCloud(accessKey: "key", mode: .group(secret: "secret", groupID: "GID_test"))
        #expect(
            try MQTTCredentials.alibabaCloud(account).fields(clientID: clientID, keepAlive: 60)
                == MQTTCredentials.Fields(userName: "key", password: Array(password.utf8))
        )
        #expect(throws: MQTTCredentialsError.clientID("GID_other@@@1", "is not of the group GID_test")) {
            try MQTTCredentials.alibabaCloud(account).fields(clientID: "GID_other@@@1", keepAlive: 60)
        }
    }

    @Test("[SPEC A14] sign the client identifier, with Signature|AccessKey|InstanceId for user name")
    func clientSignature() throws {
        // printf GID_test@@@0001 | openssl dgst -sha1 -hmac secret -binary | base64
        let account = MQTTAlibabaCloud(
            accessKey: "key",
            mode: .signature(secret: "secret", instanceID: "post-cn-1")
        )
        #expect(
            try MQTTCredentials.alibabaCloud(account).fields(clientID: "GID_test@@@0001", keepAlive: 120)
                == MQTTCredentials.Fields(
                    userName: "Signature|key|post-cn-1",
                    password: Array("6FhaoXRsBQs1odFbY2ZKG1/CMy8=".utf8)
                )
        )
    }

    @Test(
        "[SPEC A14] hand tokens over with what each allows",
        arguments: [
            ([.init(.read, "a"), .init(.write, "b")], "R|a|W|b"), ([.init(.readAndWrite, "c")], "RW|c"),
        ] as [([MQTTAlibabaCloud.Token], String)]
    )
    func tokens(_ tokens: [MQTTAlibabaCloud.Token], _ password: String) throws {
        let account = MQTTAlibabaCloud(accessKey: "key", mode: .token(tokens, instanceID: "i"))
        #expect(
            try MQTTCredentials.alibabaCloud(account).fields(clientID: "G@@@D", keepAlive: 1)
                == MQTTCredentials.Fields(userName: "Token|key|i", password: Array(password.utf8))
        )
    }

    @Test(
        "[SPEC A14] want a client identifier of the form GroupID@@@DeviceID",
        arguments: [
            ("", "is not GroupID@@@DeviceID"), ("a@@b", "is not GroupID@@@DeviceID"),
            ("@@@b", "is not GroupID@@@DeviceID"), ("a@@@", "is not GroupID@@@DeviceID"),
            ("a b@@@c", "holds a character that is not visible ASCII"),
            ("\u{E9}@@@c", "holds a character that is not visible ASCII"),
            ("a@@@" + String(repeating: "b", count: 61), "has 65 bytes, and 64 are allowed"),
        ]
    )
    func clientID(_ id: String, _ words: String) throws {
        let account = MQTTAlibabaCloud(accessKey: "key", mode: .signature(secret: "s", instanceID: "i"))
        #expect(throws: MQTTCredentialsError.clientID(id, words)) { try account.check(clientID: id, keepAlive: 60) }
        #expect(throws: MQTTCredentialsError.clientID(id, words)) {
            try MQTTAlibabaCloud.p2pTopic(rootTopic: "root", clientID: id)
        }
    }

    @Test(
        "[SPEC A14] want a keep-alive of 120 seconds at most, and one at all",
        arguments: [0, 121, 65_535] as [UInt16]
    )
    func keepAlive(_ seconds: UInt16) throws {
        let account = MQTTAlibabaCloud(accessKey: "key", mode: .signature(secret: "s", instanceID: "i"))
        try account.check(clientID: "G@@@D", keepAlive: 120)
        #expect(throws: MQTTCredentialsError.keepAlive(seconds)) {
            try account.check(clientID: "G@@@D", keepAlive: seconds)
        }
    }

    @Test("[SPEC A14] reach one client under the root topic's second level p2p")
    func p2p() throws {
        let id = try MQTTAlibabaCloud.clientID(groupID: "GID_x", deviceID: "d1")
        #expect(id == "GID_x@@@d1")
        #expect(try MQTTAlibabaCloud.p2pTopic(rootTopic: "root", clientID: id) == "root/p2p/GID_x@@@d1")
        #expect(throws: MQTTCredentialsError.clientID("@@@d1", "is not GroupID@@@DeviceID")) {
            try MQTTAlibabaCloud.clientID(groupID: "", deviceID: "d1")
        }
        for root in ["", "a/b", "+", "#", "a\0"] {
            #expect(throws: MQTTCredentialsError.rootTopic(root)) {
                try MQTTAlibabaCloud.p2pTopic(rootTopic: root, clientID: id)
            }
        }
    }
}

@Suite("A token file")
struct TokenFileTests {
    @Test(
        "is the password, without one line end",
        arguments: [("abc", "abc"), ("abc\n", "abc"), ("abc\r\n", "abc"), ("abc\n\n", "abc\n"), (" a ", " a ")]
    )
    func reads(_ content: String, _ token: String) throws {
        let folder = try ScratchFolder()
        defer { withExtendedLifetime(folder) {} }
        let file = MQTTTokenFile(path: try folder.write(content, to: "token"))
        #expect(
            try MQTTCredentials.tokenFile(user: "u", file).fields(clientID: "c", keepAlive: 0)
                == MQTTCredentials.Fields(userName: "u", password: Array(token.utf8))
        )
    }

    @Test("is read again each time")
    func renewed() throws {
        let folder = try ScratchFolder()
        defer { withExtendedLifetime(folder) {} }
        let file = MQTTTokenFile(path: try folder.write("one", to: "token"))
        #expect(try file.token() == Array("one".utf8))
        _ = try folder.write("two", to: "token")
        #expect(try file.token() == Array("two".utf8))
    }

    @Test("is refused when there is none in it, or too much")
    func refuses() throws {
        let folder = try ScratchFolder()
        defer { withExtendedLifetime(folder) {} }
        let none = try folder.write("\n", to: "none")
        #expect(throws: MQTTCredentialsError.empty(path: none)) { try MQTTTokenFile(path: none).token() }
        let four = try folder.write("four\r\n", to: "four")
        #expect(try MQTTTokenFile(path: four, sizeLimit: 4).token() == Array("four".utf8))
        #expect(throws: MQTTCredentialsError.tooLarge(path: four, limit: 3)) {
            try MQTTTokenFile(path: four, sizeLimit: 3).token()
        }
        let large = try folder.write(String(repeating: "x", count: 100_000), to: "large")
        #expect(throws: MQTTCredentialsError.tooLarge(path: large, limit: 65_535)) {
            try MQTTTokenFile(path: large).token()
        }
    }

    @Test("is refused with the system's reason when it cannot be read")
    func unreadable() throws {
        let folder = try ScratchFolder()
        defer { withExtendedLifetime(folder) {} }
        let missing = folder.path("missing")
        let error = #expect(throws: MQTTCredentialsError.self) { try MQTTTokenFile(path: missing).token() }
        #expect(error?.description == "cannot read the token in \(missing): No such file or directory")
        let directory = #expect(throws: MQTTCredentialsError.self) { try MQTTTokenFile(path: folder.path).token() }
        #expect(directory?.description == "cannot read the token in \(folder.path): Is a directory")
    }
}

@Suite("Credentials in a CONNECT")
struct CredentialsInConnectTests {
    @Test("[SPEC A14] are in CONNECT as computed")
    func signature() async throws {
        let account = MQTTAlibabaCloud(accessKey: "key", mode: .group(secret: "secret", groupID: "GID_test"))
        let expected = Connect(
            version: .v311,
            clientID: "GID_test@@@0001",
            cleanStart: true,
            keepAlive: 60,
            username: "key",
            password: Array("7s7KTrjYpV6QqvpQU9tAgXOpkn0=".utf8)
        )
        let peer = try await ScriptedPeer(script: [
            .expect(wire(.connect(expected), version: .v311)), .send(wire(.connAck(ConnAck()), version: .v311)),
        ])
        var configuration = MQTTClientConfiguration(port: peer.port, .v311, id: "GID_test@@@0001")
        configuration.credentials = .alibabaCloud(account)
        let client = MQTTClient(configuration)
        try await client.connect()
        #expect(try await peer.mismatches() == [])
        client.abort()
        try await peer.shutdown()
    }

    private struct Outage: Error, CustomStringConvertible { let description = "the token service is away" }

    /// The error of a connect to a closed port.
    private static func error(_ change: (inout MQTTClientConfiguration) -> Void) async -> MQTTClientError? {
        let client = MQTTClient(MQTTClientConfiguration(port: 1, .v311, change))
        return await failure { () async throws(MQTTClientError) in try await client.connect() }
    }

    @Test("that are not there end the attempt before there is a connection, and may be there for the next")
    func missing() async throws {
        let folder = try ScratchFolder()
        defer { withExtendedLifetime(folder) {} }
        let (none, empty) = (folder.path("none"), try folder.write("", to: "empty"))
        for (path, words) in [
            (none, "cannot read the token in \(none): No such file or directory"),
            (empty, "there is no token in \(empty)"),
        ] {
            let error = await Self.error { $0.credentials = .tokenFile(user: nil, MQTTTokenFile(path: path)) }
            #expect(error == .noCredentials(words))
            let provided = await Self.error {
                $0.credentialsProvider = { _ in .tokenFile(user: nil, MQTTTokenFile(path: path)) }
            }
            #expect(provided == .noCredentials(words))
        }
        let failed = await Self.error { $0.credentialsProvider = { _ in throw Outage() } }
        #expect(failed == .noCredentials("the token service is away"))
    }

    @Test("that cannot be right are final")
    func nonsense() async throws {
        let folder = try ScratchFolder()
        defer { withExtendedLifetime(folder) {} }
        let path = try folder.write("four", to: "four")
        let file = MQTTTokenFile(path: path, sizeLimit: 3)
        let words = "\(path) is larger than the 3 bytes of a token"
        #expect(await Self.error { $0.credentials = .tokenFile(user: nil, file) } == .invalid(words))
        let account = MQTTAlibabaCloud(accessKey: "key", mode: .signature(secret: "s", instanceID: "i"))
        let error = await Self.error {
            $0.clientID = "G@@@D"
            $0.keepAlive = 121
            $0.credentials = .alibabaCloud(account)
        }
        #expect(error == .invalid("Alibaba Cloud wants a keep-alive of 1 to 120 seconds, and it is 121"))
    }

    @Test("[SPEC A12] that come later are found by the session manager's next attempt")
    func rotated() async throws {
        let folder = try ScratchFolder()
        defer { withExtendedLifetime(folder) {} }
        try await withBroker { broker in
            let path = folder.path("token")
            let waits = Waits()
            let manager = MQTTSessionManager(
                MQTTClientConfiguration(port: broker.port) {
                    $0.credentials = .tokenFile(user: "u", MQTTTokenFile(path: path))
                },
                waits
            )
            manager.connect()
            var begun = waits.begun.makeAsyncIterator()
            #expect(await begun.next() == .seconds(1))
            #expect(manager.state == .waiting)
            let words = "cannot read the token in \(path): No such file or directory"
            #expect(manager.lastError == .noCredentials(words))
            _ = try folder.write("token", to: "token")
            waits.end()
            await manager.until(.connected)
            #expect(manager.lastError == nil)
            await manager.disconnect()
        }
    }
}
