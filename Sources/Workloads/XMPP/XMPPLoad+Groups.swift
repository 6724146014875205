import Measurement
import Transport
package import XMPP

// Groups in which every member receives from every other: rooms, and circles of contacts.
extension XMPPLoad {
    package var hasGroups: Bool { self.work == .muc || self.work == .presence }

    /// Number of groups.
    ///
    /// Client k is in group k mod this number, so the first clients open the rooms and later ones join them.
    package var groups: Int { self.clients / max(1, self.groupSize) }

    /// The kind of stanza that carries the ledger's header; `nil` if none does.
    package var stanza: String? {
        switch self.work {
        case .login, .ping, .register, .unregister: nil
        case .message, .muc: "message"
        case .presence: "presence"
        }
    }

    /// The client's id in the header of its messages; members of a group have consecutive ids.
    package func ledgerID(_ number: Int) -> UInt32 {
        guard self.hasGroups else { return UInt32(truncatingIfNeeded: number) }
        let (member, group) = number.quotientAndRemainder(dividingBy: self.groups)
        return UInt32(truncatingIfNeeded: group * self.groupSize + member)
    }

    /// The senders whose stanzas a client receives, as ledger ids.
    package func publishers(heardBy number: Int) -> [Range<UInt32>] {
        let own = self.ledgerID(number)
        guard self.hasGroups else {
            let writers = self.writers(to: number)
            return [UInt32(writers.lowerBound)..<UInt32(writers.upperBound)]
        }
        let size = UInt32(self.groupSize)
        let all = own / size * size..<(own / size + 1) * size
        // A room also sends messages back to their sender; a client is no contact of its own.
        return self.work == .muc ? [all] : [all.lowerBound..<own, own + 1..<all.upperBound].filter { !$0.isEmpty }
    }

    /// A room's bare JID, by its number from 0.
    package func room(_ number: Int) -> String {
        "\(self.room.replacing("%r", with: "\(number + 1)"))@\(self.service)"
    }

    /// A client's room and its nick in it.
    package func occupant(_ number: Int) -> String {
        var random = SplitMix64(seed: self.seed &+ UInt64(number) &* 0x9FB2_1C65_1E98_DF25)
        let nick = self.nick.rendered(self.values(of: number), random: &random)
        return "\(self.room(number % self.groups))/\(String(decoding: nick, as: UTF8.self))"
    }

    /// The markup around id, address and text of a client's stanzas; `%n` marks the place of a namespace.
    var stanzaForm: (start: String, hasAddress: Bool, tail: String, end: String) {
        switch self.work {
        case .login, .message, .ping, .register, .unregister:
            ("message%n type='chat'", true, "<body>", "</body></message>")
        case .muc: ("message%n type='groupchat'", true, "<body>", "</body></message>")
        case .presence: ("presence%n", false, "<show>chat</show><status>", "</status></presence>")
        }
    }

    /// Offset of the text of `<show>`, counted from the closing `'>` of the start tag.
    static var showOffset: Int { 8 }

    /// The part of a room's address that is invalid.
    package enum RoomPart: Hashable, Sendable { case name, nick }

    /// A description of the groups' first invalid setting.
    package func groupProblem() -> (part: RoomPart, words: String)? {
        guard self.hasGroups else { return nil }
        if self.work == .muc {
            do throws(JIDError) { _ = try JID(self.room(0)) } catch {
                return (.name, "'\(self.room(0))' is no JID: \(error)")
            }
        }
        var seen: Set<JID> = []
        for number in 0..<self.clients {
            let text = self.work == .muc ? self.occupant(number) : self.user(number).bare
            do throws(JIDError) {
                let jid = try JID(text)
                guard seen.insert(jid).inserted else {
                    let words =
                        self.work == .muc
                        ? "two clients would be \(jid), and the room lets in one of them; put %i into it"
                        : "two clients are \(jid), and a client cannot be its own contact; give each a user of its own"
                    return (.nick, words)
                }
            } catch {
                return (.nick, "'\(text)' is no JID: \(error)")
            }
        }
        return nil
    }

    // MARK: - The stream options of a load, and their check

    /// One value for all clients of an event loop, with its cache of derived keys.
    var streamOptions: XMPPStreamOptions {
        var options = XMPPStreamOptions()
        options.tlsPolicy = XMPPTLSPolicy(rawValue: self.tls.rawValue) ?? .required
        options.framing = self.layers.contains(.webSocket) ? .webSocket : .stream
        options.mechanisms = self.mechanism.map { [$0] }
        options.allowsPlainWithoutTLS = self.allowsPlainWithoutTLS
        options.registration = self.work == .register ? .only : .none
        options.management = self.streamManagement ? .acknowledge : .off
        // One `<r/>` after each write.
        options.acknowledgesEvery = self.streamManagement ? 1 : 0
        return options
    }

    package func account(_ number: Int) -> XMPPAccount {
        let user = self.user(number)
        guard let jid = try? JID(user.full) else { preconditionFailure("problem() refuses what is no JID") }
        return XMPPAccount(jid, password: user.password)
    }

    /// A description of the load's first invalid setting.
    package func problem() -> String? {
        var seen: Set<JID> = []
        for number in 0..<self.clients {
            let user = self.user(number)
            do throws(JIDError) {
                let jid = try JID(user.full)
                guard seen.insert(self.work.isOfAccounts ? jid.bare : jid).inserted else {
                    return self.work.isOfAccounts
                        ? "two clients would register \(jid.bare); put %i before the @, or give each a user of its own"
                        : "two clients would be \(jid), and the server lets one of them go; "
                            + "put %i into the JID, or give each a user of its own"
                }
            } catch {
                return "'\(user.full)' is no JID: \(error)"
            }
        }
        return nil
    }
}
