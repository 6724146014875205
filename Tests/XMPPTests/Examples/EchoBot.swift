import XMPP

/// A bot in a room: it repeats what it is asked to, keeps its contacts, and survives outages.
final class EchoBot: Sendable {
    let roster = XMPPRoster()
    let rooms = XMPPRooms()
    let client: XMPPClient
    private let presence: XMPPPresence
    private let room: JID

    /// `friends`: the domain whose users may see the bot's presence.
    init(_ configuration: XMPPClientConfiguration, room: JID, friends: String) {
        self.room = room
        self.presence = XMPPPresence(accepts: { $0.domain == friends })
        let version = XMPPSoftwareVersion.Version(name: "EchoBot", version: "1.0")
        self.client = XMPPClient(
            configuration,
            modules: [
                XMPPReconnect(initialDelay: .milliseconds(100)), XMPPPing(interval: .seconds(30)), XMPPDiscovery(),
                XMPPSoftwareVersion(version), self.roster, self.presence, self.rooms,
            ]
        )
    }

    /// Joins the room, and answers until the client is released or the task is cancelled.
    func run() async throws {
        let messages = self.rooms.events
        try await self.client.connect()
        for contact in try await self.roster.items().values { print("contact", contact.jid) }
        try await self.presence.set(status: "Ask me: echo ...")
        let joined = try await self.rooms.join(self.room, as: "echo", history: .none)
        if joined.isNew { try await self.rooms.acceptDefaults(of: self.room) }
        for await case .message(let message) in messages where !message.isOwn {
            guard let text = message.body, text.hasPrefix("echo ") else { continue }
            try await self.say(String(text.dropFirst(5)))
        }
    }

    /// A message that the stream took arrives once, also over an outage; before that the bot waits for its stream.
    private func say(_ text: String) async throws {
        while await self.isConnected() {
            do {
                try await self.rooms.say(text, in: self.room)
                return
            } catch XMPPClientError.notConnected, XMPPClientError.ended {}
        }
    }

    /// Waits for the end of an outage; `false` if it has none.
    private func isConnected() async -> Bool {
        for await state in self.client.states {
            if case .connected = state { return true }
            if case .closed(let end) = state, !end.mayHeal { return false }
        }
        return false
    }
}
