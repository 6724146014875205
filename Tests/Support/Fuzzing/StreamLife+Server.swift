import LoopContext
import NIOCore
import NIOEmbedded
import Transport
import XMPP

// Actions of a well-behaved server.
extension StreamLife {
    private static let names = """
        xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'
        """

    /// Answers the oldest thing that was asked.
    func answer() {
        if self.observer.tls != nil { return self.secured() }
        guard let asked = self.server.takeAsked() else { return }
        switch asked {
        case .header: self.sendHeader()
        case .startTLS: self.say("<proceed xmlns='\(XMPPNamespace.tls)'/>")
        case .auth(let mechanism):
            let knows = ["PLAIN", "EXTERNAL", "ANONYMOUS"].contains(mechanism)
            self.say(
                knows
                    ? "<success xmlns='\(XMPPNamespace.sasl)'/>"
                    : "<failure xmlns='\(XMPPNamespace.sasl)'><invalid-mechanism/></failure>"
            )
        case .authenticate(let mechanism, let previous, let binds, let enables, let wantsToken):
            guard ["PLAIN", "EXTERNAL", "ANONYMOUS"].contains(mechanism) else {
                return self.say(
                    "<failure xmlns='\(XMPPNamespace.sasl2)'><invalid-mechanism xmlns='\(XMPPNamespace.sasl)'/></failure>"
                )
            }
            self.succeed(resuming: previous, binds: binds, enables: enables, wantsToken: wantsToken)
        case .response: self.say("<failure xmlns='\(XMPPNamespace.sasl)'><not-authorized/></failure>")
        case .request(let id, let payload, let namespace, let isSet):
            self.sendResult(id, payload, namespace, isSet: isSet)
        case .enable: self.say("<enabled xmlns='\(XMPPNamespace.streamManagement)' id='s' resume='true' max='60'/>")
        case .resume(let previous):
            let count = self.observer.book.received
            self.say("<resumed xmlns='\(XMPPNamespace.streamManagement)' previd='\(previous)' h='\(count)'/>")
        case .acknowledgement: self.acknowledge()
        case .closing:
            self.say(
                self.options.framing == .webSocket ? "<close xmlns='\(XMPPNamespace.framing)'/>" : "</stream:stream>"
            )
        case .hello: self.say("<done xmlns='urn:example:hello'/>")
        }
    }

    private func succeed(resuming previous: String?, binds: Bool, enables: Bool, wantsToken: Bool) {
        let management = XMPPNamespace.streamManagement
        let token = wantsToken ? "<token xmlns='\(XMPPNamespace.fast)' token='t'/>" : ""
        let success = { (resource: String, more: String) in
            "<success xmlns='\(XMPPNamespace.sasl2)'><authorization-identifier>juliet@im.example.com\(resource)"
                + "</authorization-identifier>\(more)\(token)</success>"
        }
        if let previous {
            let count = self.observer.book.received
            return self.say(success("", "<resumed xmlns='\(management)' previd='\(previous)' h='\(count)'/>"))
        }
        let enabled = enables ? "<enabled xmlns='\(management)' id='s' resume='true' max='60'/>" : ""
        let bound = binds ? "<bound xmlns='\(XMPPNamespace.bind2)'>\(enabled)</bound>" : ""
        self.say(success(binds ? "/balcony" : "", bound))
        let features = "<bind xmlns='\(XMPPNamespace.bind)'/><sm xmlns='\(management)'/>"
        self.say("<stream:features \(Self.names)>\(features)</stream:features>")
    }

    private func acknowledge() {
        self.say("<a xmlns='\(XMPPNamespace.streamManagement)' h='\(self.observer.book.received)'/>")
    }

    private func sendHeader() {
        let number = self.server.headers
        var features = ""
        if self.stream.pointee.facts.contains(.authenticated) {
            features = "<bind xmlns='\(XMPPNamespace.bind)'/><sm xmlns='\(XMPPNamespace.streamManagement)'/>"
            if number & 4 != 0 { features += "<session xmlns='\(XMPPNamespace.session)'/>" }
        } else {
            let mechanisms = ["SCRAM-SHA-1", "PLAIN", "EXTERNAL", "ANONYMOUS"]
                .map { "<mechanism>\($0)</mechanism>" }.joined()
            features = "<mechanisms xmlns='\(XMPPNamespace.sasl)'>\(mechanisms)</mechanisms>"
            if !self.stream.pointee.facts.contains(.secure) { features += "<starttls xmlns='\(XMPPNamespace.tls)'/>" }
            if self.options.login != .sasl {
                let vars = [XMPPNamespace.carbons, XMPPNamespace.clientState, XMPPNamespace.streamManagement]
                    .map { "<feature var='\($0)'/>" }.joined()
                features +=
                    "<authentication xmlns='\(XMPPNamespace.sasl2)'>\(mechanisms)<inline>"
                    + "<bind xmlns='\(XMPPNamespace.bind2)'><inline>\(vars)</inline></bind>"
                    + "<sm xmlns='\(XMPPNamespace.streamManagement)'/><fast xmlns='\(XMPPNamespace.fast)'>"
                    + "<mechanism>HT-SHA-256-NONE</mechanism></fast></inline></authentication>"
            }
            features += "<hello xmlns='urn:example:hello'/>"
        }
        let from = self.options.peerRole == nil ? "im.example.com" : "romeo@im.example.com"
        let values = "from='\(from)' to='juliet@im.example.com' version='1.0' id='i\(number)'"
        if self.options.framing == .webSocket {
            self.say("<open xmlns='\(XMPPNamespace.framing)' \(values)/>")
            self.say("<stream:features \(Self.names)>\(features)</stream:features>")
        } else {
            self.say("<stream:stream \(Self.names) \(values)><stream:features>\(features)</stream:features>")
        }
    }

    private func sendResult(_ id: String, _ payload: String, _ namespace: String, isSet: Bool) {
        var inner = ""
        switch namespace {
        case XMPPNamespace.bind:
            inner = "<bind xmlns='\(namespace)'><jid>juliet@im.example.com/balcony</jid></bind>"
        case XMPPNamespace.register where !isSet: inner = "<query xmlns='\(namespace)'><username/><password/></query>"
        case XMPPNamespace.auth where !isSet: inner = "<query xmlns='\(namespace)'><digest/></query>"
        case XMPPNamespace.roster: inner = "<query xmlns='\(namespace)' ver='1'><item jid='a@b'/></query>"
        case XMPPNamespace.mam: inner = "<fin xmlns='\(namespace)' complete='true'/>"
        default: break
        }
        self.say("<iq xmlns='jabber:client' type='result' id='\(id)'>\(inner)</iq>")
    }
}

// Actions of the owner, and events of its connection.
extension StreamLife {
    func call(_ code: UInt8, _ argument: UInt8) throws(Finding) {
        self.context.refresh()
        guard self.isOpen, let connection = self.connection else {
            if code % 24 == 8 { try self.connect() }
            if code % 24 == 3 { self.loop.advanceTime(by: .milliseconds(Int64(argument) * 500)) }
            if code % 24 == 21 { self.answerApplication(argument, in: nil) }
            return
        }
        switch code % 24 {
        case 0: self.answer()
        case 1: self.secured()
        case 2: self.observer.tls.take()?(.failure(.reset))
        case 3: self.advance(by: .milliseconds(Int64(argument) * 500))
        case 4: self.advance(by: max(min(self.observer.timer, self.now + .seconds(70)) - self.now, .zero))
        case 5: connection.finish()
        case 6: connection.abort()
        case 7: self.lose(argument)
        case 8: break
        case 9, 10, 11, 12, 13, 14: self.own(code % 24, argument, on: connection)
        case 15: self.toggle(argument)
        case 16: self.say("<r xmlns='\(XMPPNamespace.streamManagement)'/>")
        case 17: self.acknowledge()
        case 18: self.say("<iq xmlns='jabber:client' type='get' id='q\(argument)' from='a@b/c'><x xmlns='y'/></iq>")
        case 19: self.say("<message xmlns='jabber:client' from='a@b/c' id='1'><body>x</body></message>")
        case 20: self.say("<iq xmlns='jabber:client' type='result' id='\(argument)' from='evil@example.net'/>")
        case 21: self.useModules(argument, on: connection)
        case 22: self.observer.reaction = { [weak self] in self?.react(argument) }
        default: connection.flush()
        }
    }

    private func own(_ code: UInt8, _ argument: UInt8, on connection: XMPPConnection) {
        let body = XMPPElement("body", namespace: XMPPNamespace.client, text: "to <\(argument)> & \"all\"")
        let message = XMPPElement("message", namespace: XMPPNamespace.client, children: [.element(body)])
        switch code {
        case 9: _ = try? connection.send(message)
        case 10:
            connection.append { $0.writeString("<message xmlns='jabber:client'><body>raw</body></message>") }
            connection.flush()
        case 11: self.ask(argument, on: connection)
        case 12:
            self.token += 1
            let isSent = connection.request(
                self.token,
                to: argument & 1 == 0 ? nil : Self.friend,
                timeout: .seconds(Int64(argument & 31)),
                before: Array("<iq xmlns='jabber:client' type='get' id='".utf8),
                after: Array("'><ping xmlns='urn:xmpp:ping'/></iq>".utf8)
            )
            if isSent { self.observer.tokens[self.token, default: 0] += 0 }
        case 13: connection.requestAcknowledgement()
        default:
            let place = self.receipts.count
            self.receipts.append(0)
            do throws(XMPPWriteError) {
                let offer = try connection.offer(message) { _ in self.receipts[place] += 1 }
                if offer != .sent { self.receipts[place] += 1 }
            } catch {
                self.receipts[place] += 1
            }
        }
    }

    /// Sends a request with an `id` of its own, to an entity or without `to`, or one that cannot be sent.
    private func ask(_ argument: UInt8, on connection: XMPPConnection) {
        let to = ["a@b/c", "@", "im.example.com"]
        var iq = XMPPElement("iq", namespace: XMPPNamespace.client, attributes: ["type": "get"])
        if argument & 3 != 0 { iq["to"] = to[Int(argument & 3) - 1] }
        iq.add(XMPPElement("x", namespace: argument & 64 == 0 ? "y" : "\u{1}"))
        let place = self.closures.count
        self.closures.append(0)
        connection.request(iq, timeout: .seconds(Int64(argument >> 2 & 15))) { _ in self.closures[place] += 1 }
    }

    private func useModules(_ argument: UInt8, on connection: XMPPConnection) {
        guard self.settings.hasModules, self.state == .connected else { return }
        let place = self.closures.count
        func count<Value>(_ result: Result<Value, XMPPRequestError>) { self.closures[place] += 1 }
        let context = XMPPModuleContext(connection)
        switch argument % 16 {
        case 12:
            let isThere = argument & 16 == 0
            let presence = isThere ? XMPPPresence.available(show: .away) : XMPPPresence.presence("unavailable")
            _ = try? connection.send(presence)
            return
        case 13:
            _ = self.activity.set(argument & 16 == 0 ? .inactive : .active, in: context)
            return
        case 14: return self.answerApplication(argument, in: context)
        default: self.closures.append(0)
        }
        switch argument % 16 {
        case 0: self.rooms.join(Self.room, .init(nick: "jul"), in: context) { count($0) }
        case 1: self.rooms.leave(Self.room, in: context) { count($0) }
        case 2: self.roster.get(in: context, knowsVersions: true) { count($0) }
        case 3: self.archive.ask(.init(max: 2), in: context) { count($0) }
        case 4: context.request(CarbonsHandler.request(argument & 16 == 0)) { count($0) }
        case 5: PingHandler.ping(nil, in: context, timeout: .seconds(5)) { count($0) }
        case 6: context.request(PubSubHandler.items(of: .init("n"))) { count($0) }
        case 7:
            self.removals += 1
            self.registration.remove(in: context) { count($0) }
        case 8: self.rooms.setNick("n\(argument)", of: Self.room, in: context) { count($0) }
        case 9: self.rooms.say(Self.body, in: Self.room, in: context) { count($0) }
        case 10: self.discovery.capabilities(of: Self.friend, in: context) { count($0) }
        default:
            let message = XMPPElement(
                "message",
                namespace: XMPPNamespace.client,
                attributes: ["to": Self.friend.description, "id": "1"]
            )
            self.receiptsAsked.deliver(
                message,
                to: Self.friend,
                until: argument & 16 == 0 ? .received : .displayed,
                timeout: argument & 32 == 0 ? .seconds(5) : nil,
                in: context
            ) { count($0) }
        }
    }

    private static let body = XMPPElement("body", namespace: XMPPNamespace.client, text: "x")

    /// Answers the newest request, with or without a connection.
    private func answerApplication(_ argument: UInt8, in context: XMPPModuleContext?) {
        guard let number = self.pending.numbers.popLast() else { return }
        let answers: [XMPPAnswer] = [
            .result(nil), .error(StanzaError(.forbidden)), .result(XMPPElement("\u{1}", namespace: "")),
        ]
        self.responder.finished(number, answers[Int(argument >> 4) % 3], in: context)
    }

    /// From within a call of the connection's.
    private func react(_ argument: UInt8) {
        guard let connection = self.connection else { return }
        switch argument % 8 {
        case 0: connection.abort()
        case 1: connection.finish()
        case 2: self.own(9, argument, on: connection)
        case 3: self.ask(0, on: connection)
        case 4: self.useModules(argument >> 3, on: connection)
        case 5: self.own(14, argument, on: connection)
        case 6: connection.inject(XMPPElement("message", namespace: XMPPNamespace.client))
        default: self.channel?.close(promise: nil)
        }
    }

    private func toggle(_ argument: UInt8) {
        self.channel?.isWritable = argument & 1 == 0
        self.channel?.pipeline.fireChannelWritabilityChanged()
    }

    private func lose(_ argument: UInt8) {
        guard let channel = self.channel else { return }
        switch argument % 4 {
        case 0: channel.close(promise: nil)
        case 1: channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        case 2: channel.pipeline.fireErrorCaught(IOError(errnoCode: 104, reason: "read"))
        default: channel.pipeline.fireChannelInactive()
        }
        self.loop.run()
    }

    func advance(by time: TimeAmount) {
        let end = self.now + time
        var turns = 0
        while self.isOpen, self.observer.timer <= end {
            self.loop.advanceTime(to: max(self.observer.timer, self.now))
            self.observer.timer = .distantFuture
            self.connection?.timerFired(now: self.context.refresh())
            turns += 1
            if turns > 10_000 { return self.observer.complain("timers without end") }
        }
        if self.now < end { self.loop.advanceTime(to: end) }
        self.context.refresh()
    }
}
