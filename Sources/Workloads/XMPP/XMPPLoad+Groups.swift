import LoadEngine
import Measurement
import Transport
import XMPP

// Groups in which everybody hears everybody: rooms, and circles of contacts.
extension XMPPLoad {
    package var hasGroups: Bool { self.work == .muc || self.work == .presence }

    /// How many; client k is in group k mod that many, so that the first ones open the rooms and the next ones join them.
    package var groups: Int { self.clients / max(1, self.groupSize) }

    /// The kind of stanza that carries the ledger's header; `nil` where none does.
    package var stanza: String? {
        switch self.work {
        case .login, .ping, .register, .unregister: nil
        case .message, .muc: "message"
        case .presence: "presence"
        }
    }

    /// What stands for a client in the header of what it sends: in groups the members lie side by side.
    package func ledgerID(_ number: Int) -> UInt32 {
        guard self.hasGroups else { return UInt32(truncatingIfNeeded: number) }
        let (member, group) = number.quotientAndRemainder(dividingBy: self.groups)
        return UInt32(truncatingIfNeeded: group * self.groupSize + member)
    }

    /// Whose stanzas come to a client, as ledger ids.
    package func publishers(heardBy number: Int) -> [Range<UInt32>] {
        let own = self.ledgerID(number)
        guard self.hasGroups else {
            let writers = self.writers(to: number)
            return [UInt32(writers.lowerBound)..<UInt32(writers.upperBound)]
        }
        let size = UInt32(self.groupSize)
        let all = own / size * size..<(own / size + 1) * size
        // A room sends everybody's messages back to who wrote them; nobody is a contact of his own.
        return self.work == .muc ? [all] : [all.lowerBound..<own, own + 1..<all.upperBound].filter { !$0.isEmpty }
    }

    /// A room's bare JID, by its number from 0 on.
    package func room(_ number: Int) -> String {
        "\(self.room.replacing("%r", with: "\(number + 1)"))@\(self.service)"
    }

    /// A client's room and its nick there.
    package func occupant(_ number: Int) -> String {
        var random = SplitMix64(seed: self.seed &+ UInt64(number) &* 0x9FB2_1C65_1E98_DF25)
        let nick = self.nick.rendered(self.values(of: number), random: &random)
        return "\(self.room(number % self.groups))/\(String(decoding: nick, as: UTF8.self))"
    }

    /// The words around id, address and text of what a client sends; `%n` is a namespace where one is wanted.
    var stanzaForm: (start: String, hasAddress: Bool, tail: String, end: String) {
        switch self.work {
        case .login, .message, .ping, .register, .unregister:
            ("message%n type='chat'", true, "<body>", "</body></message>")
        case .muc: ("message%n type='groupchat'", true, "<body>", "</body></message>")
        case .presence: ("presence%n", false, "<show>chat</show><status>", "</status></presence>")
        }
    }

    /// In the words before the text of a presence, its closing `'>` included: where what `<show>` says begins.
    static var showOffset: Int { 8 }

    /// A part of a room that can be impossible.
    package enum RoomPart: Hashable, Sendable { case name, nick }

    /// The first thing that is impossible about the groups, in words.
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
                        : "two clients are \(jid), and nobody is a contact of his own; give each a user of its own"
                    return (.nick, words)
                }
            } catch {
                return (.nick, "'\(text)' is no JID: \(error)")
            }
        }
        return nil
    }
}
