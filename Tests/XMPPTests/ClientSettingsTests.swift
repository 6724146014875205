import NIOCore
import SASL
import Testing
import XMPP

@Suite("Settings of a client")
struct ClientSettingsTests {
    /// A setting, and what it has to become on the stream.
    struct Setting: Sendable, CustomTestStringConvertible {
        let name: String
        let change: @Sendable (inout XMPPClientConfiguration) -> Void
        let isSet: @Sendable (XMPPStreamOptions) -> Bool

        var testDescription: String { self.name }

        init(
            _ name: String,
            _ change: @escaping @Sendable (inout XMPPClientConfiguration) -> Void,
            _ isSet: @escaping @Sendable (XMPPStreamOptions) -> Bool
        ) {
            self.name = name
            self.change = change
            self.isSet = isSet
        }
    }

    private static let all: [Setting] = [
        Setting("encryption", { $0.encryption = .preferred }, { $0.tlsPolicy == .preferred }),
        Setting("mechanisms", { $0.mechanisms = ["PLAIN"] }, { $0.mechanisms == ["PLAIN"] }),
        Setting("allowsPlainWithoutTLS", { $0.allowsPlainWithoutTLS = true }, \.allowsPlainWithoutTLS),
        Setting("allowsDigestMD5", { $0.allowsDigestMD5 = true }, \.allowsDigestMD5),
        Setting("requiresChannelBinding", { $0.requiresChannelBinding = true }, \.requiresChannelBinding),
        Setting("allowsLegacyAuthentication", { $0.allowsLegacyAuthentication = true }, \.allowsLegacyAuthentication),
        Setting("certificateFile", { $0.certificateFile = "a" }, \.hasClientCertificate),
        Setting("registers", { $0.registers = true }, { $0.registration == .createIfMissing }),
        Setting(
            "registrationFields",
            { $0.registrationFields = ["nick": "a"] },
            { $0.registrationFields == ["nick": "a"] }
        ),
        Setting("sasl2", { $0.sasl2 = XMPPSASL2Options() }, { $0.login == .sasl2(XMPPSASL2Options()) }),
        Setting("skipsSession", { $0.skipsSession = true }, { !$0.startsSession }),
        Setting("language", { $0.language = "de" }, { $0.language == "de" }),
        Setting("resumes", { $0.resumes = false }, { $0.management == .off && $0.acknowledgesEvery == 0 }),
        Setting("keepAlive", { $0.keepAlive = .seconds(50) }, { $0.keepAlive == .seconds(50) }),
        Setting("keepAliveCharacter", { $0.keepAliveCharacter = .tab }, { $0.keepAliveCharacter == .tab }),
        Setting(
            "automaticReply",
            { $0.automaticReply.condition = .forbidden },
            { $0.automaticReply.condition == .forbidden }
        ),
        Setting("customNamespaces", { $0.customNamespaces = ["urn:a"] }, { $0.customNamespaces == ["urn:a"] }),
        Setting("refusesUnknownElements", { $0.refusesUnknownElements = true }, \.refusesUnknownElements),
        Setting("requestTimeout", { $0.requestTimeout = .seconds(3) }, { $0.requestTimeout == .seconds(3) }),
        Setting("closingTimeout", { $0.closingTimeout = .seconds(3) }, { $0.closingTime == .seconds(3) }),
        Setting("limits.parser", { $0.limits.parser.depth = 7 }, { $0.limits.depth == 7 }),
        Setting("limits.passwordIterations", { $0.limits.passwordIterations = 1...2 }, { $0.iterations == 1...2 }),
        Setting("limits.redirects", { $0.limits.redirects = 0 }, { $0.maximumRedirects == 1 }),
        Setting("limits.unacknowledged", { $0.limits.unacknowledged = 9 }, { $0.maximumUnacknowledged == 9 }),
        Setting(
            "limits.unacknowledgedBytes",
            { $0.limits.unacknowledgedBytes = 9 },
            { $0.maximumUnacknowledgedBytes == 9 }
        ),
        Setting("limits.acknowledgesEvery", { $0.limits.acknowledgesEvery = 2 }, { $0.acknowledgesEvery == 2 }),
    ]

    @Test("[A16] a setting of the client is one of its stream, and is not set by default", arguments: all)
    func settings(_ setting: Setting) {
        var configuration = XMPPClientConfiguration(jid: "a@b", password: "c")
        #expect(!setting.isSet(configuration.streamOptions(SCRAMKeyCache())))
        setting.change(&configuration)
        #expect(setting.isSet(configuration.streamOptions(SCRAMKeyCache())))
    }

    @Test("[A16] the keep-alive sends the character that is chosen", arguments: XMPPKeepAliveCharacter.allCases)
    func keepAliveCharacter(_ character: XMPPKeepAliveCharacter) throws {
        let rig = try ConnectionRig.ready(ConnectionRig.options { $0.keepAliveCharacter = character })
        rig.advance(.seconds(200))
        #expect(try rig.sent() == character.rawValue)
    }

    @Test("[A17] a registration fills in the fields of the application, in a form or not; a missing one ends it")
    func registrationFields() throws {
        let fields = "<username/><password/><nick/>"
        let form =
            "<x xmlns='jabber:x:data' type='form'><field var='username'><required/></field>"
            + "<field var='nick'><required/></field></x>"
        for (query, expected) in [(fields, "<nick>J</nick>"), (form, "<field var='nick'><value>J</value></field>")] {
            for hasField in [true, false] {
                let options = ConnectionRig.options {
                    $0.registration = .create
                    $0.registrationFields = hasField ? ["nick": "J"] : [:]
                }
                let rig = try ConnectionRig(options, account: ConnectionRig.account)
                rig.start()
                try rig.receive("\(ConnectionRig.header)a'><stream:features/>")
                _ = try rig.sent()
                try rig.receive(
                    "<iq type='result' id='00000000000000001'><query xmlns='jabber:iq:register'>\(query)</query></iq>"
                )
                #expect(try rig.sent().contains(expected) == hasField)
                #expect(rig.end == (hasField ? nil : .registrationImpossible(.field("nick"))))
            }
        }
    }
}
