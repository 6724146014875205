import NIOCore
import SASL
import Testing
import XMPP
import XMPPCodec

@Suite("SASL2, Bind 2 and tokens")
struct SASL2Tests {
    private static let agent = XMPPUserAgent(id: "d4565fa7-4d72-4749-b3d3-740edbf87770")
    private static let address = "juliet@im.example.com/balcony~1"
    private static let everything = "urn:xmpp:carbons:2 urn:xmpp:csi:0 urn:xmpp:sm:3"

    private static func options(
        _ management: XMPPManagement = .resume,
        _ change: (inout XMPPStreamOptions, inout XMPPSASL2Options) -> Void = { _, _ in }
    ) -> XMPPStreamOptions {
        ConnectionRig.options {
            var login = XMPPSASL2Options(userAgent: Self.agent)
            login.enablesCarbonsInline = true
            login.beginsInactive = true
            $0.management = management
            $0.keepAlive = .zero
            $0.wallClock = { 1_000 }
            change(&$0, &login)
            $0.login = .sasl2(login)
        }
    }

    /// The server's offer; `bind` names what it enables with the resource, `nil` for no Bind 2.
    private static func offer(bind: String? = everything, more: String = "<sm xmlns='urn:xmpp:sm:3'/>") -> String {
        let features = (bind ?? "").split(separator: " ").map { "<feature var='\($0)'/>" }.joined()
        let bind2 = bind == nil ? "" : "<bind xmlns='urn:xmpp:bind:0'><inline>\(features)</inline></bind>"
        return "<authentication xmlns='urn:xmpp:sasl:2'><mechanism>PLAIN</mechanism><inline>\(bind2)\(more)</inline>"
            + "</authentication>"
    }

    private static func success(_ more: String, as identifier: String = address) -> String {
        "<success xmlns='urn:xmpp:sasl:2'><authorization-identifier>\(identifier)</authorization-identifier>"
            + "\(more)</success>"
    }

    private static func bound(_ more: String) -> String { "<bound xmlns='urn:xmpp:bind:0'>\(more)</bound>" }

    private static func features(_ text: String = "<ver xmlns='urn:xmpp:features:rosterver'/>") -> String {
        "<stream:features>\(text)</stream:features>"
    }

    /// Brings the stream to its login, and returns what it asks.
    @discardableResult
    private static func begin(_ rig: ConnectionRig, _ offer: String = offer(), isSecure: Bool = false) throws -> String
    {
        rig.start(within: .seconds(60), isSecure: isSecure)
        _ = try rig.sent()
        try rig.receive("\(ConnectionRig.header)a'><stream:features>\(offer)</stream:features>")
        return try rig.sent()
    }

    /// A session with a resource, stream management and carbons.
    private static func session(_ options: XMPPStreamOptions = options(), max: String = "600") throws -> ConnectionRig {
        let rig = try ConnectionRig(options, account: ConnectionRig.account)
        try Self.begin(rig)
        try rig.receive(
            Self.success(Self.bound("<enabled xmlns='urn:xmpp:sm:3' id='s1' resume='true' max='\(max)'/>"))
                + Self.features()
        )
        #expect(rig.observer.calls == [.ready(Self.address, resumed: false, acknowledged: 0, lost: 0)])
        _ = try rig.sent()
        return rig
    }

    private static func message(_ number: Int) -> String { "<message><body>\(number)</body></message>" }

    private static func say(_ numbers: ClosedRange<Int>, on rig: ConnectionRig) {
        for number in numbers {
            let isTaken = rig.connection.send { $0.writeString(Self.message(number)) }
            #expect(isTaken)
        }
    }

    // MARK: Resumption

    private static let resume = "<resume xmlns='urn:xmpp:sm:3' previd='s1' h='1'/>"
    private static let bind = """
        <bind xmlns='urn:xmpp:bind:0'><tag>balcony</tag><enable xmlns='urn:xmpp:carbons:2'/>\
        <enable xmlns='urn:xmpp:sm:3' resume='true'/><inactive xmlns='urn:xmpp:csi:0'/></bind>
        """

    /// A session that was cut behind three stanzas sent and one received.
    private static func cut(_ options: XMPPStreamOptions = options(), max: String = "600") throws -> ConnectionRig {
        let rig = try Self.session(options, max: max)
        Self.say(1...3, on: rig)
        try rig.receive("<message from='a@b'><body>in</body></message>")
        rig.channel.close(promise: nil)
        #expect(rig.canResume)
        return try rig.again()
    }

    @Test("[XEP-0198 §9.2] resumed within the login: nothing lost, nothing twice, in order, before anything new")
    func resumes() throws {
        let rig = try Self.cut()
        #expect(try Self.begin(rig).contains(Self.resume + Self.bind))
        rig.observer.onReady = { Self.say(4...4, on: rig) }
        // Early servers send features behind it.
        try rig.receive(
            Self.success("<resumed xmlns='urn:xmpp:sm:3' previd='s1' h='1'/>") + "<message/>" + Self.features("<x/>")
        )
        #expect(
            try rig.sent()
                == Self.message(2) + Self.message(3) + "<r xmlns='urn:xmpp:sm:3'/>" + Self.message(4)
        )
        #expect(
            rig.observer.calls.prefix(2) == [
                .acknowledged(1), .ready(Self.address, resumed: true, acknowledged: 1, lost: 0),
            ]
        )
        #expect(rig.strays.unknown == 0)
        #expect(rig.observer.phases[.bind] == nil)
        try rig.receive("<r xmlns='urn:xmpp:sm:3'/><a xmlns='urn:xmpp:sm:3' h='4'/>")
        #expect(try rig.sent() == "<a xmlns='urn:xmpp:sm:3' h='2'/>")
        #expect(rig.unacknowledged == 0)
    }

    @Test("[XEP-0352 §5.2] a resumed session has its features and its carbons, and counts as active")
    func keepsFacts() throws {
        let rig = try Self.session()
        #expect(rig.observer.readiness?.offers == [.rosterVersioning, .clientState])
        #expect(rig.observer.readiness?.enabled == [.carbons, .inactive])
        rig.channel.close(promise: nil)
        // Twice: what was taken over can be taken over again.
        var last = rig
        for _ in 0..<2 {
            last = try last.again()
            try Self.begin(last)
            try last.receive(Self.success("<resumed xmlns='urn:xmpp:sm:3' previd='s1' h='0'/>"))
            #expect(last.observer.readiness?.resumed == true)
            #expect(last.observer.readiness?.offers == [.rosterVersioning, .clientState])
            #expect(last.observer.readiness?.enabled == [.carbons])
            last.channel.close(promise: nil)
        }
        // By RFC 6120 the features come anew, and what they say holds.
        let plain = try last.again()
        plain.start()
        try plain.login(features: "<sm xmlns='urn:xmpp:sm:3'/><sub xmlns='urn:xmpp:features:pre-approval'/>")
        try plain.receive("<resumed xmlns='urn:xmpp:sm:3' previd='s1' h='0'/>")
        #expect(plain.observer.readiness?.offers == .preApproval)
        #expect(plain.observer.readiness?.enabled == [.carbons])
    }

    @Test("[XEP-0198 §9.2] if the session is gone the same login brings a new one, and lost stanzas are reported")
    func resumptionFails() throws {
        let rig = try Self.cut()
        try Self.begin(rig)
        try rig.receive(
            Self.success(
                "<failed xmlns='urn:xmpp:sm:3' h='1'/>"
                    + Self.bound("<enabled xmlns='urn:xmpp:sm:3' id='s2' resume='1'/>"),
                as: "juliet@im.example.com/other"
            ) + Self.features()
        )
        #expect(
            rig.observer.calls == [
                .acknowledged(1), .ready("juliet@im.example.com/other", resumed: false, acknowledged: 1, lost: 2),
            ]
        )
        #expect(try rig.sent() == "")
        #expect(rig.unacknowledged == 0)
        Self.say(5...5, on: rig)
        rig.channel.close(promise: nil)
        let next = try rig.again()
        #expect(try Self.begin(next).contains("<resume xmlns='urn:xmpp:sm:3' previd='s2' h='0'/>"))
        try next.receive(Self.success("<resumed xmlns='urn:xmpp:sm:3' previd='s2' h='0'/>"))
        _ = try next.sent()
        #expect(next.unacknowledged == 1)
    }

    @Test("[XEP-0386 §3.2] a new resource without a word about the session is the session's end")
    func boundOnly() throws {
        let rig = try Self.cut()
        try Self.begin(rig)
        try rig.receive(Self.success(Self.bound("")) + Self.features())
        #expect(rig.observer.calls == [.ready(Self.address, resumed: false, acknowledged: 0, lost: 3)])
    }

    @Test("[XEP-0198 §9] without resumption in the login it follows the login, and no resource comes with it")
    func ordinaryResumption() throws {
        let rig = try Self.cut()
        let asked = try Self.begin(rig, Self.offer(more: ""))
        #expect(!asked.contains("<resume "))
        #expect(!asked.contains("<bind "))
        try rig.receive(
            Self.success("", as: "juliet@im.example.com") + Self.features("<sm xmlns='urn:xmpp:sm:3'/>")
        )
        #expect(try rig.sent() == Self.resume)
        try rig.receive("<resumed xmlns='urn:xmpp:sm:3' previd='s1' h='3'/>")
        #expect(rig.observer.readiness?.resumed == true)
    }

    @Test("[XEP-0198 §9.2] a server that says nothing about the resumption is asked again behind the login")
    func unanswered() throws {
        let rig = try Self.cut()
        #expect(try Self.begin(rig, Self.offer(bind: nil)).contains(Self.resume))
        try rig.receive(
            Self.success("", as: "juliet@im.example.com") + Self.features("<sm xmlns='urn:xmpp:sm:3'/>")
        )
        #expect(try rig.sent() == Self.resume)
    }

    @Test("[XEP-0198 §5] a session that the server has dropped by now is not asked for")
    func over() throws {
        let rig = try Self.cut(max: "5")
        rig.advance(.seconds(6))
        let asked = try Self.begin(rig)
        #expect(!asked.contains("<resume "))
        #expect(asked.contains(Self.bind))
        try rig.receive(Self.success(Self.bound("")) + Self.features())
        #expect(rig.observer.readiness?.lost == 3)
    }

    @Test(
        "[XEP-0198 §9.2] a resumption that is none ends the stream",
        arguments: [
            (
                "<resumed xmlns='urn:xmpp:sm:3' previd='other' h='1'/>",
                .violation(.undefinedCondition, "it resumed another stream than requested")
            ),
            (
                "<resumed xmlns='urn:xmpp:sm:3' previd='s1'/>",
                .violation(.undefinedCondition, "it resumes a stream without a count")
            ),
            ("<resumed xmlns='urn:xmpp:sm:3' previd='s1' h='4'/>", .handledCountTooHigh(4, sent: 3)),
            (
                "<resumed xmlns='urn:xmpp:sm:3' previd='s1' h='1'/><bound xmlns='urn:xmpp:bind:0'/>",
                .violation(.undefinedCondition, "it resumed a stream unasked")
            ),
        ] as [(String, XMPPConnectionEnd)]
    )
    func wrongResumption(_ answer: String, _ end: XMPPConnectionEnd) throws {
        let rig = try Self.cut()
        try Self.begin(rig)
        try rig.receive(Self.success(answer))
        #expect(rig.end == end)
        #expect(!rig.observer.calls.contains { if case .ready = $0 { true } else { false } })
    }

    @Test("[XEP-0198 §9] a session that its owner never heard of is not resumed")
    func untold() throws {
        let rig = try ConnectionRig(Self.options(), account: ConnectionRig.account)
        try Self.begin(rig)
        try rig.receive(Self.success(Self.bound("<enabled xmlns='urn:xmpp:sm:3' id='s1' resume='true'/>")))
        rig.channel.close(promise: nil)
        #expect(!rig.canResume)
    }

    @Test("[XEP-0198 §9.1] a new session begins to count with the login")
    func counts() throws {
        let rig = try ConnectionRig(Self.options(.acknowledge), account: ConnectionRig.account)
        try Self.begin(rig)
        try rig.receive(
            Self.success(Self.bound("<enabled xmlns='urn:xmpp:sm:3'/>")) + "<message/>" + Self.features()
                + "<presence/><r xmlns='urn:xmpp:sm:3'/>"
        )
        #expect(try rig.sent() == "<a xmlns='urn:xmpp:sm:3' h='2'/>")
        Self.say(1...2, on: rig)
        try rig.receive("<a xmlns='urn:xmpp:sm:3' h='2'/>")
        #expect(rig.unacknowledged == 0)
        rig.channel.close(promise: nil)
        #expect(!rig.canResume)
    }

    @Test("[XEP-0198 §9.1] stream management that was not requested is not on", arguments: [true, false])
    func managedUnasked(isOffered: Bool) throws {
        let management: XMPPManagement = isOffered ? .off : .resume
        let rig = try ConnectionRig(Self.options(management), account: ConnectionRig.account)
        try Self.begin(rig, Self.offer(bind: isOffered ? Self.everything : "", more: ""))
        try rig.receive(
            Self.success(Self.bound("<enabled xmlns='urn:xmpp:sm:3' id='s1' resume='true'/>")) + Self.features()
                + "<r xmlns='urn:xmpp:sm:3'/>"
        )
        #expect(try rig.sent() == "")
        #expect(rig.strays.unknown == 1)
        rig.channel.close(promise: nil)
        #expect(!rig.canResume)
    }

    // MARK: Phases and features

    @Test("each phase of the login has its time, and binding has none")
    func phases() throws {
        let rig = try ConnectionRig(Self.options(), account: ConnectionRig.account)
        rig.start(within: .seconds(60))
        rig.advance(.seconds(1))
        try rig.receive("\(ConnectionRig.header)a'><stream:features>\(Self.offer())</stream:features>")
        rig.advance(.seconds(2))
        try rig.receive(Self.success(Self.bound("<enabled xmlns='urn:xmpp:sm:3'/>")))
        rig.advance(.seconds(4))
        try rig.receive(Self.features())
        #expect(rig.observer.phases == [.stream: .seconds(5), .sasl: .seconds(2)])
        #expect(rig.observer.readiness?.phases.session == .seconds(7))
    }

    @Test("[RFC 6121 §2.6] streams that share their features are each told their own", arguments: [false, true])
    func sharedFeatures(isShared: Bool) throws {
        let shared = XMPPStreamShared(Self.options(.off), features: isShared ? FeatureTrees() : nil)
        let offers: [(String, XMPPStreamOffers)] = [
            ("<ver xmlns='urn:xmpp:features:rosterver'/>", .rosterVersioning), ("<x xmlns='y'/>", []),
            ("<sub xmlns='urn:xmpp:features:pre-approval'/>", .preApproval),
            ("<ver xmlns='urn:xmpp:features:rosterver'/>", .rosterVersioning),
            ("<csi xmlns='urn:xmpp:csi:0'/>", .clientState),
        ]
        for (text, offered) in offers {
            let place = StreamPlace(XMPPStream(ConnectionRig.account, shared: shared))
            let rig = try ConnectionRig(shared.options, account: ConnectionRig.account, place: place)
            // Features in front of the login say nothing about the session.
            try Self.begin(rig, Self.offer(bind: "") + "<csi xmlns='urn:xmpp:csi:0'/>")
            try rig.receive(Self.success(Self.bound("")) + Self.features(text))
            #expect(rig.observer.readiness?.offers == offered, "\(text)")

            let plain = try ConnectionRig.ready(features: text)
            #expect(plain.observer.readiness?.offers == offered, "\(text)")
            #expect(plain.observer.readiness?.enabled == [])
        }
    }

    // MARK: Tokens

    private static let token = XMPPFastToken(mechanism: "HT-SHA-256-ENDP", token: "secret-token:fast-Zm9v")
    private static let offersTokens = offer(
        more: "<fast xmlns='urn:xmpp:fast:0'><mechanism>HT-SHA-256-NONE</mechanism>"
            + "<mechanism>HT-SHA-256-ENDP</mechanism></fast>"
    )

    private static func usingTokens(requiresBinding: Bool = false) -> XMPPStreamOptions {
        Self.options(.off) {
            $0.requiresChannelBinding = requiresBinding
            if requiresBinding { $0.mechanisms = nil }
            $1.usesTokens = true
        }
    }

    private static func rig(
        _ options: XMPPStreamOptions = usingTokens(),
        token: XMPPFastToken? = nil,
        binding: SASLChannelBinding? = nil,
        offer: String = offersTokens
    ) throws -> (ConnectionRig, String) {
        let rig = try ConnectionRig(options, account: ConnectionRig.account)
        rig.stream.pointee.token = token
        rig.start(within: .seconds(60), isSecure: true)
        if let binding { rig.stream.pointee.setChannelBindings { [binding] } }
        _ = try rig.sent()
        try rig.receive("\(ConnectionRig.header)a'><stream:features>\(offer)</stream:features>")
        return (rig, try rig.sent())
    }

    private static let endPoint = SASLChannelBinding(.tlsServerEndPoint, Array(0..<32))

    @Test("[XEP-0484 §6] a token that is bound to TLS is requested where TLS has a binding, and logs in there alone")
    func bound() throws {
        let (fresh, request) = try Self.rig(binding: Self.endPoint)
        #expect(request.contains("<request-token xmlns='urn:xmpp:fast:0' mechanism='HT-SHA-256-ENDP'/>"))
        try fresh.receive(Self.success(Self.bound("") + "<token xmlns='urn:xmpp:fast:0' token='t'/>"))
        let kept = fresh.stream.pointee.token
        #expect(kept == XMPPFastToken(mechanism: "HT-SHA-256-ENDP", token: "t"))

        let (_, login) = try Self.rig(token: Self.token, binding: Self.endPoint)
        #expect(login.contains("mechanism='HT-SHA-256-ENDP'><initial-response>anVsaWV0AGniUQPWyrvd"))
        #expect(!login.contains("request-token"))

        let (other, unbound) = try Self.rig(token: Self.token)
        #expect(unbound.contains("mechanism='PLAIN'"))
        #expect(unbound.contains("<request-token xmlns='urn:xmpp:fast:0' mechanism='HT-SHA-256-NONE'/>"))
        let stays = other.stream.pointee.token
        #expect(stays == Self.token)
    }

    @Test("[XEP-0484 §6] where logins have to be bound, a token that is not is neither used nor requested")
    func requiresBinding() throws {
        let options = Self.usingTokens(requiresBinding: true)
        let unbound = XMPPFastToken(mechanism: "HT-SHA-256-NONE", token: "t")
        let (rig, sent) = try Self.rig(options, token: unbound)
        #expect(!sent.contains("<authenticate"))
        #expect(rig.end == .noMechanism(.noBinding(offered: ["PLAIN"])))
        let (_, login) = try Self.rig(options, token: Self.token, binding: Self.endPoint)
        #expect(login.contains("mechanism='HT-SHA-256-ENDP'"))
    }

    @Test("[XEP-0440 §3] a login by SASL2 is given up where bound mechanisms come without types")
    func typesStripped() throws {
        let offer =
            "<authentication xmlns='urn:xmpp:sasl:2'><mechanism>SCRAM-SHA-256</mechanism>"
            + "<mechanism>SCRAM-SHA-256-PLUS</mechanism></authentication>"
        let types =
            "<sasl-channel-binding xmlns='urn:xmpp:sasl-cb:0'><channel-binding type='tls-server-end-point'/>"
            + "</sasl-channel-binding>"
        let options = Self.options(.off) { options, _ in options.mechanisms = nil }
        let (rig, sent) = try Self.rig(options, binding: Self.endPoint, offer: offer)
        #expect(rig.end == .noMechanism(.bindingTypesStripped))
        #expect(!sent.contains("<authenticate"))
        let (_, login) = try Self.rig(options, binding: Self.endPoint, offer: offer + types)
        #expect(login.contains("mechanism='SCRAM-SHA-256-PLUS'"))
    }

    @Test(
        "[XEP-0484 §3.3] the server's token is kept up to its limits",
        arguments: [
            ("token='t' expiry='2026-07-22T12:00:00Z'", "t", "2026-07-22T12:00:00Z"), ("token='t'", "t", nil),
            ("token='\(String(repeating: "x", count: 1_024))'", String(repeating: "x", count: 1_024), nil),
            ("token='\(String(repeating: "x", count: 1_025))'", nil, nil),
            ("token='t' expiry='\(String(repeating: "1", count: 65))'", "t", nil), ("token=''", nil, nil),
            ("expiry='2026-07-22T12:00:00Z'", nil, nil),
        ] as [(String, String?, String?)]
    )
    func limits(_ attributes: String, _ text: String?, _ expiry: String?) throws {
        let (rig, _) = try Self.rig()
        try rig.receive(Self.success(Self.bound("") + "<token xmlns='urn:xmpp:fast:0' \(attributes)/>"))
        let token = rig.stream.pointee.token
        #expect(token?.token == text)
        #expect(token?.expiry == expiry)
    }

    @Test("[XEP-0484 §3.4] the count of a token stays a positive number of 32 bits", arguments: [-5, 0, 7, Int.max])
    func count(_ start: Int) throws {
        var token = XMPPFastToken(mechanism: "HT-SHA-256-NONE", token: "t")
        token.count = start
        let (rig, sent) = try Self.rig(token: token)
        let next = start < 0 ? 1 : start == .max ? Int(Int32.max) : start + 1
        #expect(sent.contains("<fast xmlns='urn:xmpp:fast:0' count='\(next)'/>"))
        let kept = rig.stream.pointee.token
        #expect(kept?.count == next)
    }

    @Test("[XEP-0484 §4.1] a token is not for acting as another, nor for a client without a name")
    func ownOnly() throws {
        let token = XMPPFastToken(mechanism: "HT-SHA-256-NONE", token: "t")
        var account = ConnectionRig.account
        account.authorizationIdentity = "romeo@im.example.com"
        let acting = try ConnectionRig(Self.usingTokens(), account: account)
        acting.stream.pointee.token = token
        let asked = try Self.begin(acting, Self.offersTokens)
        #expect(asked.contains("mechanism='PLAIN'"))
        #expect(!asked.contains("urn:xmpp:fast:0"))

        let nobody = XMPPAccount(try JID("im.example.com"))
        let anonymous = try ConnectionRig(
            Self.options(.off) {
                $0.mechanisms = nil; $1.usesTokens = true
            },
            account: nobody
        )
        anonymous.stream.pointee.token = token
        let offer = Self.offersTokens.replacing("PLAIN", with: "ANONYMOUS")
        let alone = try Self.begin(anonymous, offer)
        #expect(alone.contains("mechanism='ANONYMOUS'"))
        #expect(!alone.contains("urn:xmpp:fast:0"))
    }

    @Test("[XEP-0484 §4.1] a refused token without a password to follow is told as it was refused")
    func noPassword() throws {
        var account = ConnectionRig.account
        account.password = ""
        let rig = try ConnectionRig(Self.usingTokens(), account: account)
        rig.stream.pointee.token = XMPPFastToken(mechanism: "HT-SHA-256-NONE", token: "t")
        try Self.begin(rig, Self.offersTokens)
        try rig.receive(
            "<failure xmlns='urn:xmpp:sasl:2'><credentials-expired xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/></failure>"
        )
        #expect(rig.end == .notAuthenticated(XMPPAuthenticationFailure(.credentialsExpired)))
        let token = rig.stream.pointee.token
        #expect(token == nil)
    }

    @Test("a token shows its secret in no text")
    func secret() {
        let token = XMPPFastToken(mechanism: "HT-SHA-256-NONE", token: "hush", expiry: "2026-07-22T12:00:00Z")
        #expect("\(token)" == "a token for HT-SHA-256-NONE")
        #expect(!"\(token)".contains("hush"))
    }

    @Test("[XEP-0388 §2.6.3] tasks without end, or with long names, leave one short line")
    func tasks() throws {
        let rig = try ConnectionRig(Self.options(.off), account: ConnectionRig.account)
        try Self.begin(rig)
        let task = "<task>\(String(repeating: "x", count: 5_000))</task>"
        let tasks = String(repeating: task, count: 100)
        try rig.receive("<continue xmlns='urn:xmpp:sasl:2'><tasks>\(tasks)</tasks></continue>")
        guard case .tasksRequired(let names)? = rig.end else {
            return #expect(Bool(false), "\(String(describing: rig.end))")
        }
        #expect(names.count <= 32)
        #expect(names.allSatisfy { $0.utf8.count <= 500 })
        #expect(rig.end?.retry == .never)
        #expect(rig.end?.kind == "sasl")
    }

    @Test("[XEP-0484 §4.1] a refused token is no reason to give up")
    func retry() {
        let end = XMPPConnectionEnd.tokenRefused(XMPPAuthenticationFailure(.notAuthorized))
        #expect(end.retry == .soon)
        #expect(end.kind == "not-authorized")
    }

    // MARK: Times

    @Test(
        "[XEP-0082 §3.2] a token expires at its time, wherever on earth that is",
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("1970-01-01T00:16:40.999Z", 1_000), ("2026-07-01T12:00:00Z", 1_782_907_200),
            ("2026-07-01T14:00:00+02:00", 1_782_907_200), ("2026-07-01T06:30:00-05:30", 1_782_907_200),
            ("2000-02-29T23:59:60Z", 951_868_800), ("1969-12-31T23:59:59Z", -1),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
            ("2100-03-01T00:00:00Z", 4_107_542_400),
        ] as [(String, Int64)]
    )
    func expiry(_ text: String, _ time: Int64) {
        let token = XMPPFastToken(mechanism: "", token: "", expiry: text)
        #expect(!token.isExpired(now: time - 1))
        #expect(token.isExpired(now: time))
    }

    @Test(
        "[XEP-0082 §3.2] a time that cannot be read is unknown",
        arguments: [
            "", "2026", "2026-07-01", "2026-07-01T12:00:00", "2026-07-01 12:00:00Z", "2026-13-01T12:00:00Z",
            "2026-02-29T12:00:00Z", "2026-00-01T12:00:00Z", "2026-07-00T12:00:00Z", "2100-02-29T12:00:00Z",
            "2026-04-31T12:00:00Z", "2026-07-01T24:00:00Z", "2026-07-01T12:60:00Z", "2026-07-01T12:00:61Z",
            "2026-07-01T12:00:00.Z", "2026-07-01T12:00:00+2:00", "2026-07-01T12:00:00+24:00", "2026-07-01T12:00:00Zx",
            "-2026-07-01T12:00:00Z", "２026-07-01T12:00:00Z", "2026-7-01T12:00:00Z",
        ]
    )
    func unreadable(_ text: String) {
        #expect(!XMPPFastToken(mechanism: "", token: "", expiry: text).isExpired(now: .max))
    }

    @Test("[XEP-0484 §3.3] a time that cannot be read does not cost the token")
    func unknownExpiry() throws {
        let token = XMPPFastToken(mechanism: "HT-SHA-256-NONE", token: "t", expiry: "soon")
        let (_, sent) = try Self.rig(token: token)
        #expect(sent.contains("mechanism='HT-SHA-256-NONE'"))
    }
}
