import DataEncodings
public import XMPPCodec

/// Rooms in which many talk.
///
/// The client is in the rooms that it joined, until it leaves or the room says otherwise. A resumed stream is still in
/// its rooms. After a connection that could not be resumed the module joins them again, with the same nicks.
///
/// Spec: XEP-0045.
public final class XMPPRooms: XMPPModule {
    /// The way to the client.
    public let link = XMPPModuleLink()
    private let source = XMPPEvents<Event> { $0.estimatedSize }
    private let rejoins: Bool
    private let maximumOccupants: Int

    /// - Parameters:
    ///   - rejoins: whether rooms are joined again on a new stream, with the messages since the last one.
    ///   - maximumOccupants: occupants that are kept for each room; others cause no events.
    public init(rejoins: Bool = true, maximumOccupants: Int = 10_000) {
        self.rejoins = rejoins
        self.maximumOccupants = maximumOccupants
    }

    /// Rooms.
    public var features: [String] { [XMPPNamespace.muc] }

    /// Makes the handler.
    public func makeHandler() -> any XMPPHandler {
        RoomsHandler(rejoins: self.rejoins, maximumOccupants: self.maximumOccupants) { [source] in source.send($0) }
    }

    /// Ends the streams of events.
    public func clientReleased() { self.source.finish() }

    /// Events from now on; each stream gets all of them.
    public var events: AsyncStream<Event> { self.source.stream() }

    // MARK: Coming and going

    /// Joins a room, and returns when the room has said who is in it.
    ///
    /// While a join is under way another one for the same room shares its outcome. A join of a room that the client is
    /// in returns at once, after a change of the nick if it has another one. A cancelled task stops waiting, but not the
    /// join.
    ///
    /// - Parameters:
    ///   - room: the room; a resource is ignored.
    ///   - nick: the name to have there.
    ///   - password: for a room that requires one.
    ///   - history: the earlier messages that the room is to send.
    ///   - takesOtherNick: whether two other nicks, with `-1` and `-2` appended, are tried if this one is taken.
    /// - Returns: the room as joined.
    /// - Throws: ``XMPPClientError/refused(_:)`` with the room's error, such as `registration-required` or `forbidden`;
    ///   `timedOut`, `ended`, `notConnected`, `invalid` for an impossible nick, `cancelled`.
    @discardableResult
    public func join(
        _ room: JID,
        as nick: String,
        password: String? = nil,
        history: History = .none,
        takesOtherNick: Bool = true
    ) async throws(XMPPClientError) -> Joined {
        try await self.ask { (handler: RoomsHandler, context, answer) in
            handler.join(
                room,
                RoomsHandler.Wish(nick: nick, password: password, history: history, takesOtherNick: takesOtherNick),
                in: context,
                answer
            )
        }
    }

    /// Leaves a room, and returns when the room has confirmed it; at once if the client is not in it.
    ///
    /// - Throws: `timedOut`, `ended`, `notConnected`, `cancelled`.
    public func leave(_ room: JID) async throws(XMPPClientError) {
        try await self.ask { (handler: RoomsHandler, context, answer) in handler.leave(room, in: context, answer) }
    }

    /// Changes the own nick (§7.6).
    ///
    /// - Throws: ``XMPPClientError/refused(_:)``, `conflict` where another person has it; `item-not-found` for a room
    ///   that the client is not in; as ``join(_:as:password:history:takesOtherNick:)``.
    public func setNick(_ nick: String, in room: JID) async throws(XMPPClientError) {
        try await self.ask { (handler: RoomsHandler, context, answer) in
            handler.setNick(nick, of: room, in: context, answer)
        }
    }

    /// All who are in a room, this client too, by nick; empty for a room that the client is not in.
    public func occupants(of room: JID) async throws(XMPPClientError) -> [Occupant] {
        try await self.withHandler { (handler: RoomsHandler) in handler.occupants(of: room) }
    }

    // MARK: Talking

    /// Says something to all in a room.
    ///
    /// - Parameters:
    ///   - body: the text.
    ///   - room: a room that the client is in.
    ///   - waits: whether to return only when the room has sent the message to all, this client too. At the end of the
    ///     connection the call fails; the message may still arrive if the stream is resumed.
    /// - Returns: the message's id, with which the room returns it.
    /// - Throws: as ``XMPPClient/send(_:until:)``; with `waits` also ``XMPPClientError/refused(_:)`` and `timedOut`.
    @discardableResult
    public func say(_ body: String, in room: JID, waits: Bool = false) async throws(XMPPClientError) -> String {
        let content = XMPPElement("body", namespace: XMPPNamespace.client, text: body)
        guard !waits else {
            return try await self.ask { (handler: RoomsHandler, context, answer) in
                handler.say(content, in: room, in: context, answer)
            }
        }
        let id = try await self.makeID()
        try await self.link.send(RoomsHandler.message(content, to: room.bare, id: id))
        return id
    }

    /// Says something to one person in a room (§7.5).
    ///
    /// - Returns: the message's id.
    /// - Throws: as ``XMPPClient/send(_:until:)``; `invalid` for an impossible nick.
    @discardableResult
    public func say(_ body: String, to nick: String, in room: JID) async throws(XMPPClientError) -> String {
        let id = try await self.makeID()
        let content = XMPPElement("body", namespace: XMPPNamespace.client, text: body)
        var message = RoomsHandler.message(content, to: try Self.occupant(nick, room), id: id)
        message["type"] = "chat"
        message.add(XMPPElement("x", namespace: XMPPNamespace.mucUser))
        try await self.link.send(message)
        return id
    }

    /// Changes the subject of a room, and returns when the room has told it (§8.1).
    ///
    /// - Throws: ``XMPPClientError/refused(_:)``, `timedOut`, `ended`, `notConnected`, `cancelled`.
    public func setSubject(_ subject: String, of room: JID) async throws(XMPPClientError) {
        let content = XMPPElement("subject", namespace: XMPPNamespace.client, text: subject)
        let _: String = try await self.ask { (handler: RoomsHandler, context, answer) in
            handler.say(content, in: room, in: context, answer)
        }
    }

    // MARK: Owners

    /// Opens a new room with its default configuration, an instant room (§10.1.2).
    ///
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func acceptDefaults(of room: JID) async throws(XMPPClientError) {
        try await self.configure(room, with: .submit())
    }

    /// The room's configuration as a form to fill in (§10.2).
    ///
    /// - Throws: as ``XMPPClient/request(_:)``; `refused` with `bad-request` for an answer without a form.
    public func configuration(of room: JID) async throws(XMPPClientError) -> XMPPDataForm {
        let query = XMPPElement("query", namespace: XMPPNamespace.mucOwner)
        let answer = try await self.link.request(.iq("get", to: room.bare, query))
        guard
            let form = answer.child("query", XMPPNamespace.mucOwner)?.child("x", XMPPNamespace.dataForms)
                .flatMap({ XMPPDataForm($0) })
        else { throw .refused(StanzaError(.badRequest)) }
        return form
    }

    /// Configures a room (§10.2).
    ///
    /// - Parameters:
    ///   - room: the room.
    ///   - form: filled in, as by ``XMPPDataForm/filled(_:)``.
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func configure(_ room: JID, with form: XMPPDataForm) async throws(XMPPClientError) {
        var query = XMPPElement("query", namespace: XMPPNamespace.mucOwner)
        query.add(form.element)
        try await self.link.request(.iq("set", to: room.bare, query))
    }

    /// Removes a room (§10.9).
    ///
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func destroy(_ room: JID, reason: String? = nil) async throws(XMPPClientError) {
        var destroy = XMPPElement("destroy", namespace: XMPPNamespace.mucOwner)
        if let reason { destroy.add(XMPPElement("reason", namespace: XMPPNamespace.mucOwner, text: reason)) }
        var query = XMPPElement("query", namespace: XMPPNamespace.mucOwner)
        query.add(destroy)
        try await self.link.request(.iq("set", to: room.bare, query))
    }

    private static func occupant(_ nick: String, _ room: JID) throws(XMPPClientError) -> JID {
        do throws(JIDError) {
            return try room.bare.with(resource: nick)
        } catch {
            throw .invalid("'\(OneLine.of(nick))' is no nick: \(error.description)")
        }
    }

    private func makeID() async throws(XMPPClientError) -> String {
        try await self.ask { (_: RoomsHandler, context, answer) in answer(.success(context.makeID())) }
    }
}
