package import NIOCore

/// The header with which a proxy passes a connection's addresses to a server (haproxy's proxy-protocol.txt §2).
///
/// Both forms are accepted, and nothing else. A server that expects a header accepts no connection without one.
package struct ProxyHeader: Hashable, Sendable {
    /// The client's address and its destination.
    ///
    /// `nil` if the header names none; then the connection's own addresses count.
    package struct Addresses: Hashable, Sendable {
        package let source: SocketAddress
        package let destination: SocketAddress

        package init(source: SocketAddress, destination: SocketAddress) {
            self.source = source
            self.destination = destination
        }
    }

    package let addresses: Addresses?
    /// Size of the header in bytes; the client's bytes follow.
    package let size: Int

    package init(addresses: Addresses?, size: Int) {
        self.addresses = addresses
        self.size = size
    }

    /// The reason why bytes are not a header.
    package enum Problem: Error, Hashable, Sendable, CustomStringConvertible {
        /// They start like neither form.
        case noHeader
        /// The line does not end within 107 bytes (§2.1).
        case lineTooLong
        /// A CR or an LF alone (§2.1).
        case lineEnd
        /// The line does not match the form (§2.1).
        case line
        /// The version is not 2 (§2.2).
        case version(UInt8)
        /// The command is neither LOCAL nor PROXY (§2.2).
        case command(UInt8)
        /// Unknown address family or transport (§2.2).
        case family(UInt8)
        /// Fewer bytes than the addresses take (§2.2).
        case addressesCut(Int)
        /// More than ``maximumBlock`` bytes after the first 16.
        case tooLong(Int)

        package var description: String {
            switch self {
            case .noHeader: "the bytes begin no PROXY header"
            case .lineTooLong: "the line of the PROXY header has more than \(ProxyHeader.maximumLine) bytes"
            case .lineEnd: "the line of the PROXY header does not end with CR and LF"
            case .line: "the line of the PROXY header is malformed"
            case .version(let version): "the PROXY header has the unknown version \(version)"
            case .command(let command): "the PROXY header has the unknown command \(command)"
            case .family(let family): "the PROXY header has the unknown address family or transport \(family)"
            case .addressesCut(let size): "the PROXY header has \(size) bytes, too few for its addresses"
            case .tooLong(let size):
                "the PROXY header has \(size) bytes, and \(ProxyHeader.maximumBlock) are the most"
            }
        }
    }

    /// The longest line in bytes, including its end (§2.1).
    package static let maximumLine = 107
    /// The most bytes of the binary form after its first 16: addresses and a proxy's extra fields.
    package static let maximumBlock = 4_096

    /// Parses the header at the start of a connection.
    ///
    /// - Parameter bytes: all bytes received so far.
    /// - Returns: the header; `nil` while it is incomplete.
    /// - Throws: an error as soon as the bytes cannot be a header.
    package static func read(_ bytes: [UInt8]) throws(Problem) -> ProxyHeader? {
        switch bytes.first {
        case nil: return nil
        case Self.lineStart[0]:
            guard zip(bytes, Self.lineStart).allSatisfy(==) else { throw .noHeader }
            return try self.line(bytes)
        default:
            guard zip(bytes, ProxyProtocol.signature).allSatisfy(==) else { throw .noHeader }
            return try self.block(bytes)
        }
    }

    // MARK: Version 1

    private static let lineStart = Array("PROXY ".utf8)

    private static func line(_ bytes: [UInt8]) throws(Problem) -> ProxyHeader? {
        let window = bytes.prefix(Self.maximumLine)
        guard let end = window.firstIndex(where: { $0 == 0x0D || $0 == 0x0A }) else {
            if bytes.count >= Self.maximumLine { throw .lineTooLong }
            return nil
        }
        guard bytes[end] == 0x0D else { throw .lineEnd }
        guard end + 1 < bytes.count else {
            if end + 1 >= Self.maximumLine { throw .lineTooLong }
            return nil
        }
        guard end + 1 < Self.maximumLine else { throw .lineTooLong }
        guard bytes[end + 1] == 0x0A else { throw .lineEnd }
        let fields = bytes[Self.lineStart.count..<end].split(separator: 0x20, omittingEmptySubsequences: false)
        let addresses: Addresses?
        switch String(decoding: fields[0], as: UTF8.self) {
        // The rest of the line is ignored.
        case "UNKNOWN": addresses = nil
        case "TCP4": addresses = try self.addresses(fields, .inet, isAllowed: Self.isDecimalDotted)
        case "TCP6": addresses = try self.addresses(fields, .inet6, isAllowed: Self.isHexColoned)
        default: throw .line
        }
        return ProxyHeader(addresses: addresses, size: end + 2)
    }

    private static func addresses(
        _ fields: [ArraySlice<UInt8>],
        _ family: NIOBSDSocket.ProtocolFamily,
        isAllowed: (UInt8) -> Bool
    ) throws(Problem) -> Addresses {
        guard fields.count == 5 else { throw .line }
        return Addresses(
            source: try self.address(fields[1], family, port: fields[3], isAllowed: isAllowed),
            destination: try self.address(fields[2], family, port: fields[4], isAllowed: isAllowed)
        )
    }

    /// inet_pton(3) is as strict as §2.1 for the allowed characters: no leading zeros, exactly 128 bits.
    private static func address(
        _ text: ArraySlice<UInt8>,
        _ family: NIOBSDSocket.ProtocolFamily,
        port: ArraySlice<UInt8>,
        isAllowed: (UInt8) -> Bool
    ) throws(Problem) -> SocketAddress {
        guard text.allSatisfy(isAllowed), (1...5).contains(port.count), port.allSatisfy(Self.isDigit),
            port.count == 1 || port.first != 0x30
        else { throw .line }
        let number = port.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        guard number <= 65_535,
            let address = try? SocketAddress(ipAddress: String(decoding: text, as: UTF8.self), port: number),
            address.protocol == family
        else { throw .line }
        return address
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
    private static func isDecimalDotted(_ byte: UInt8) -> Bool { self.isDigit(byte) || byte == 0x2E }

    /// §2.1 has no dots, but proxies on a dual-stack socket write `::ffff:192.0.2.1` for each IPv4 client.
    private static func isHexColoned(_ byte: UInt8) -> Bool {
        self.isDecimalDotted(byte) || (0x61...0x66).contains(byte | 0x20) || byte == 0x3A
    }

    // MARK: Version 2

    private static func block(_ bytes: [UInt8]) throws(Problem) -> ProxyHeader? {
        guard bytes.count > 12 else { return nil }
        guard bytes[12] >> 4 == 2 else { throw .version(bytes[12] >> 4) }
        let command = bytes[12] & 0x0F
        guard command <= 1 else { throw .command(command) }
        guard bytes.count > 13 else { return nil }
        let family = bytes[13]
        // LOCAL is the proxy's own connection; its family is ignored.
        guard command == 0 || family >> 4 <= 3 && family & 0x0F <= 2 else { throw .family(family) }
        guard bytes.count >= 16 else { return nil }
        let length = Int(bytes[14]) << 8 | Int(bytes[15])
        guard length <= Self.maximumBlock else { throw .tooLong(length) }
        // Datagrams, path sockets and unspecified families have no address for a TCP listener.
        let width = command == 0 ? 0 : family == 0x11 ? 4 : family == 0x21 ? 16 : 0
        guard width == 0 || length >= 2 * width + 4 else { throw .addressesCut(length) }
        let size = 16 + length
        guard bytes.count >= size else { return nil }
        guard width > 0 else { return ProxyHeader(addresses: nil, size: size) }
        let ports = 16 + 2 * width
        guard let source = self.address(bytes[16..<(16 + width)], port: bytes[ports...]),
            let destination = self.address(bytes[(16 + width)..<ports], port: bytes[(ports + 2)...])
        else { throw .addressesCut(length) }
        return ProxyHeader(addresses: Addresses(source: source, destination: destination), size: size)
    }

    private static func address(_ bytes: ArraySlice<UInt8>, port: ArraySlice<UInt8>) -> SocketAddress? {
        let number = port.prefix(2).reduce(0) { $0 << 8 | Int($1) }
        return try? SocketAddress(packedIPAddress: ByteBuffer(bytes: bytes), port: number)
    }
}
