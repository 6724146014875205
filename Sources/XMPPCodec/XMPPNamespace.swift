/// The namespaces of XMPP that this library speaks.
public enum XMPPNamespace {
    /// The namespace of `xml:`, bound from the start (XML-NAMES §3).
    public static let xml = "http://www.w3.org/XML/1998/namespace"
    /// The namespace of `xmlns:`; no other prefix may be bound to it.
    package static let xmlns = "http://www.w3.org/2000/xmlns/"

    /// Stanzas between client and server (RFC 6120 §4.8.2).
    public static let client = "jabber:client"
    /// Stanzas of a component (XEP-0114).
    public static let component = "jabber:component:accept"
    /// Stream header, features and stream errors (RFC 6120 §4.8.1).
    public static let stream = "http://etherx.jabber.org/streams"
    /// Conditions of stream errors (RFC 6120 §4.9.2).
    public static let streams = "urn:ietf:params:xml:ns:xmpp-streams"
    /// Conditions of stanza errors (RFC 6120 §8.3.2).
    public static let stanzas = "urn:ietf:params:xml:ns:xmpp-stanzas"
    /// STARTTLS (RFC 6120 §5).
    public static let tls = "urn:ietf:params:xml:ns:xmpp-tls"
    /// SASL (RFC 6120 §6).
    public static let sasl = "urn:ietf:params:xml:ns:xmpp-sasl"
    /// The extensible SASL profile (XEP-0388).
    public static let sasl2 = "urn:xmpp:sasl:2"
    /// Fast authentication by tokens (XEP-0484).
    public static let fast = "urn:xmpp:fast:0"
    /// Bind 2, a resource within the login (XEP-0386).
    public static let bind2 = "urn:xmpp:bind:0"
    /// Resource binding (RFC 6120 §7).
    public static let bind = "urn:ietf:params:xml:ns:xmpp-bind"
    /// Sessions (RFC 3921 §3).
    public static let session = "urn:ietf:params:xml:ns:xmpp-session"
    /// `<open/>` and `<close/>` over WebSocket (RFC 7395).
    public static let framing = "urn:ietf:params:xml:ns:xmpp-framing"

    /// Non-SASL authentication (XEP-0078).
    public static let auth = "jabber:iq:auth"
    /// Its stream feature.
    public static let authFeature = "http://jabber.org/features/iq-auth"
    /// In-band registration (XEP-0077).
    public static let register = "jabber:iq:register"
    /// Its stream feature.
    public static let registerFeature = "http://jabber.org/features/iq-register"
    /// Roster (RFC 6121 §2).
    public static let roster = "jabber:iq:roster"
    /// Roster versioning, a stream feature (RFC 6121 §2.6).
    public static let rosterVersioning = "urn:xmpp:features:rosterver"
    /// Pre-approval of subscriptions, a stream feature (RFC 6121 §3.4).
    public static let preApproval = "urn:xmpp:features:pre-approval"
    /// Software version (XEP-0092).
    public static let version = "jabber:iq:version"
    /// Data forms (XEP-0004).
    public static let dataForms = "jabber:x:data"
    /// Out-of-band data (XEP-0066).
    public static let outOfBand = "jabber:x:oob"

    /// Stream management (XEP-0198).
    public static let streamManagement = "urn:xmpp:sm:3"
    /// Ping (XEP-0199).
    public static let ping = "urn:xmpp:ping"
    /// Service discovery, what one is (XEP-0030).
    public static let discoInfo = "http://jabber.org/protocol/disco#info"
    /// Service discovery, what one has.
    public static let discoItems = "http://jabber.org/protocol/disco#items"
    /// Entity capabilities (XEP-0115).
    public static let capabilities = "http://jabber.org/protocol/caps"
    /// Multi-user chat (XEP-0045).
    public static let muc = "http://jabber.org/protocol/muc"
    /// Messages of a room to its occupants.
    public static let mucUser = "http://jabber.org/protocol/muc#user"
    /// Owners' requests.
    public static let mucOwner = "http://jabber.org/protocol/muc#owner"
    /// Message carbons (XEP-0280).
    public static let carbons = "urn:xmpp:carbons:2"
    /// Stanza forwarding (XEP-0297).
    public static let forward = "urn:xmpp:forward:0"
    /// Delayed delivery (XEP-0203).
    public static let delay = "urn:xmpp:delay"
    /// Message archive (XEP-0313).
    public static let mam = "urn:xmpp:mam:2"
    /// Result sets (XEP-0059).
    public static let rsm = "http://jabber.org/protocol/rsm"
    /// Delivery receipts (XEP-0184).
    public static let receipts = "urn:xmpp:receipts"
    /// Chat markers (XEP-0333).
    public static let chatMarkers = "urn:xmpp:chat-markers:0"
    /// Client state indication (XEP-0352).
    public static let clientState = "urn:xmpp:csi:0"
    /// Publish and subscribe (XEP-0060).
    public static let pubsub = "http://jabber.org/protocol/pubsub"
    /// Events of a node for its subscribers.
    public static let pubsubEvent = "http://jabber.org/protocol/pubsub#event"
    /// Owners' requests.
    public static let pubsubOwner = "http://jabber.org/protocol/pubsub#owner"
    /// SASL channel binding types (XEP-0440).
    public static let channelBinding = "urn:xmpp:sasl-cb:0"
}
