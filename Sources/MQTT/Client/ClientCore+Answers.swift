import MQTTCodec

/// Reason string and user properties of an answer, reported just before the answer itself.
struct ToldProperties {
    let type: PacketType
    let id: PacketID
    let properties: Properties
}

/// The PUBREC that came before PUBCOMP.
struct RecordedAnswer {
    let reason: ReasonCode
    let properties: Properties
}

extension ClientCore {
    /// The properties if they belong to this answer; empty otherwise.
    func takeProperties(of type: PacketType, _ id: PacketID?) -> Properties {
        let told = self.told
        self.told = nil
        guard let told, told.type == type, told.id == id else { return Properties() }
        return told.properties
    }
}

extension MQTTPublishResult {
    /// Adds the PUBREC's properties; its reason counts unless PUBCOMP has an error.
    mutating func add(_ recorded: RecordedAnswer) {
        self.recordedProperties = recorded.properties
        if self.reason == .success { self.reason = recorded.reason }
    }
}
