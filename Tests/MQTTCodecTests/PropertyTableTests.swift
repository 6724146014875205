import MQTTCodec
import Testing

/// Table 2-4 of MQTT 5.0, written down a second time.
@Suite("Properties and the packets that may contain them (§2.2.2.2)")
struct PropertyTableTests {
    private static let publish: Set<PropertyScope> = [.publishToServer, .publishToClient]
    private static let answers: Set<PropertyScope> = [
        .connAck, .acknowledgement, .subAck, .unsubAck, .disconnectToServer, .disconnectToClient, .auth,
    ]

    /// A good value of each property, and where it may stand.
    static let table: [(property: Property, scopes: Set<PropertyScope>)] = [
        (.payloadFormatIndicator(1), publish.union([.will])),
        (.messageExpiryInterval(.max), publish.union([.will])),
        (.contentType("t"), publish.union([.will])),
        (.responseTopic("r"), publish.union([.will])),
        (.correlationData([0, 255]), publish.union([.will])),
        (.subscriptionIdentifier(268_435_455), [.publishToClient, .subscribe]),
        (.sessionExpiryInterval(.max), [.connect, .connAck, .disconnectToServer]),
        (.assignedClientIdentifier("c"), [.connAck]),
        (.serverKeepAlive(0), [.connAck]),
        (.authenticationMethod("m"), [.connect, .connAck, .auth]),
        (.requestProblemInformation(false), [.connect]),
        (.willDelayInterval(.max), [.will]),
        (.requestResponseInformation(true), [.connect]),
        (.responseInformation("i"), [.connAck]),
        (.serverReference("s"), [.connAck, .disconnectToClient]),
        (.reasonString("why"), answers),
        (.receiveMaximum(1), [.connect, .connAck]),
        (.topicAliasMaximum(0), [.connect, .connAck]),
        (.topicAlias(1), publish),
        (.maximumQoS(1), [.connAck]),
        (.retainAvailable(false), [.connAck]),
        (.userProperty("", ""), Set(PropertyScope.allCases)),
        (.maximumPacketSize(1), [.connect, .connAck]),
        (.wildcardSubscriptionAvailable(false), [.connAck]),
        (.subscriptionIdentifierAvailable(true), [.connAck]),
        (.sharedSubscriptionAvailable(true), [.connAck]),
    ]

    /// How a property is refused where it may not stand: where its packet has it in the other direction, by another rule.
    static func refusal(of id: PropertyID, in scope: PropertyScope) -> DecodeError {
        switch (scope, id) {
        case (.publishToServer, .subscriptionIdentifier), (.disconnectToServer, .serverReference),
            (.disconnectToClient, .sessionExpiryInterval):
            .propertyOfOtherSide(id)
        default: .propertyNotAllowed(id)
        }
    }

    @Test("§2.2.2.2 a property of another packet is malformed; one of the other direction is a protocol error")
    func answers() {
        for id in PropertyID.allCases {
            #expect(DecodeError.propertyNotAllowed(id).reason == .malformedPacket)
            #expect(DecodeError.propertyOfOtherSide(id).reason == .protocolError)
        }
    }

    @Test("the table names every property but authentication data, which goes with its method")
    func whole() {
        let missing = Set(PropertyID.allCases).subtracting(Self.table.map(\.property.id))
        #expect(missing == [.authenticationData])
    }

    @Test("B7: each is taken where it belongs, and refused where it does not", arguments: PropertyScope.allCases)
    func allowed(_ scope: PropertyScope) {
        for (property, scopes) in Self.table {
            let expected: PacketProblem? =
                scopes.contains(scope) ? nil : .properties(Self.refusal(of: property.id, in: scope))
            #expect(Properties([property]).problem(in: scope, as: .v5) == expected, "\(property.id) in \(scope)")
            #expect(Properties([property]).problem(in: scope, as: .v311) == .propertiesBeforeVersion5)
        }
        let data: Properties = [.authenticationMethod("m"), .authenticationData([1])]
        let isAllowed = [.connect, .connAck, .auth].contains(scope)
        #expect((data.problem(in: scope, as: .v5) == nil) == isAllowed)
    }

    @Test("B1: twice is refused for all but user properties, and subscription identifiers to a client")
    func twice() {
        for (property, scopes) in Self.table {
            for scope in scopes {
                let isRepeatable =
                    property.id == .userProperty
                    || (property.id == .subscriptionIdentifier && scope == .publishToClient)
                #expect(
                    Properties([property, property]).problem(in: scope, as: .v5)
                        == (isRepeatable ? nil : .properties(.duplicateProperty(property.id)))
                )
            }
        }
    }

    @Test(
        "B7: values that a property does not have",
        arguments: [
            (.connect, Property(.receiveMaximum, .twoBytes(0)), .propertyValue(.receiveMaximum)),
            (.connAck, Property(.maximumPacketSize, .fourBytes(0)), .propertyValue(.maximumPacketSize)),
            (.connAck, Property(.maximumQoS, .byte(2)), .propertyValue(.maximumQoS)),
            (.connAck, Property(.retainAvailable, .byte(2)), .propertyValue(.retainAvailable)),
            (
                .connAck, Property(.sharedSubscriptionAvailable, .byte(255)),
                .propertyValue(.sharedSubscriptionAvailable)
            ),
            (.connect, Property(.requestProblemInformation, .byte(2)), .propertyValue(.requestProblemInformation)),
            (.publishToServer, Property(.payloadFormatIndicator, .byte(2)), .propertyValue(.payloadFormatIndicator)),
            (.publishToServer, Property(.topicAlias, .twoBytes(0)), .topicAliasZero),
            (.subscribe, Property(.subscriptionIdentifier, .variable(0)), .propertyValue(.subscriptionIdentifier)),
            (.subscribe, Property(.subscriptionIdentifier, .variable(268_435_456)), .variableIntegerTooLong),
            (.publishToServer, Property(.responseTopic, .text("a/+")), .propertyValue(.responseTopic)),
            (.connAck, Property(.reasonString, .text("\0")), .nullCharacter),
        ] as [(PropertyScope, Property, DecodeError)]
    )
    func values(_ scope: PropertyScope, _ property: Property, _ error: DecodeError) {
        #expect(Properties([property]).problem(in: scope, as: .v5) == .properties(error))
    }

    @Test("accessors read and write each property, and keep the order of the others")
    func accessors() {
        var properties: Properties = [.userProperty("a", "1"), .reasonString("x"), .userProperty("a", "2")]
        properties.reasonString = "y"
        properties.topicAlias = 7
        #expect(properties == [.userProperty("a", "1"), .reasonString("y"), .userProperty("a", "2"), .topicAlias(7)])
        properties.reasonString = nil
        #expect(properties.userProperties == [UserProperty("a", "1"), UserProperty("a", "2")])
        #expect(properties.reasonString == nil && properties.topicAlias == 7)
        properties.subscriptionIdentifiers = [1, 2]
        #expect(properties.subscriptionIdentifiers == [1, 2] && properties.subscriptionIdentifier == 1)
    }
}

/// Table 2-6 of MQTT 5.0, written down a second time.
@Suite("Reason codes and the packets that may contain them (§2.4)")
struct ReasonTableTests {
    /// The allowed codes of each packet; the direction matters for DISCONNECT and AUTH only.
    static let table: [(type: PacketType, toServer: Bool, codes: Set<UInt8>)] = [
        (
            .connAck, false,
            [
                0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C, 0x90, 0x95, 0x97, 0x99,
                0x9A, 0x9B, 0x9C, 0x9D, 0x9F,
            ]
        ),
        (.pubAck, true, [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]),
        (.pubRec, true, [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]),
        (.pubRel, true, [0x00, 0x92]),
        (.pubComp, true, [0x00, 0x92]),
        (.subAck, false, [0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2]),
        (.unsubAck, false, [0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91]),
        (
            .disconnect, true,
            [0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99]
        ),
        (
            .disconnect, false,
            [
                0x00, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97,
                0x98, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F, 0xA0, 0xA1, 0xA2,
            ]
        ),
        (.auth, true, [0x18, 0x19]),
        (.auth, false, [0x00, 0x18]),
    ]

    @Test("B8: every code there is, and no other")
    func codes() {
        let known = Set(Self.table.flatMap(\.codes))
        #expect(known == Set(ReasonCode.allCases.map(\.rawValue)))
        #expect(ReasonCode.allCases.allSatisfy { $0.isError == ($0.rawValue >= 128) && !$0.name.isEmpty })
        #expect(Set(ReasonCode.allCases.map(\.name)).count == ReasonCode.allCases.count)
    }

    @Test("B8: a packet takes its codes alone", arguments: Self.table)
    func allowed(_ type: PacketType, _ toServer: Bool, _ codes: Set<UInt8>) {
        let allowed = ReasonCode.allCases.filter { $0.isAllowed(in: type, toServer: toServer) }
        #expect(Set(allowed.map(\.rawValue)) == codes)
    }
}
