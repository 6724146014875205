import MQTTCodec

/// Reason string and user properties of an answer, told just before the answer itself.
struct ToldProperties {
    let type: PacketType
    let id: PacketID
    let properties: Properties
}

/// What PUBREC said in front of PUBCOMP.
struct RecordedAnswer {
    let reason: ReasonCode
    let properties: Properties
}

extension ClientCore {
    /// What was told of this answer; what was told of another one is nobody's.
    func takeProperties(of type: PacketType, _ id: PacketID?) -> Properties {
        let told = self.told
        self.told = nil
        guard let told, told.type == type, told.id == id else { return Properties() }
        return told.properties
    }
}

extension MQTTPublishResult {
    /// Adds what PUBREC said; its reason stands unless PUBCOMP knows of something worse.
    mutating func add(_ recorded: RecordedAnswer) {
        self.recordedProperties = recorded.properties
        if self.reason == .success { self.reason = recorded.reason }
    }
}
