package import NIOCore
import NIOHTTP1

/// The bytes that go to clients.
package enum LiveText {
    /// The head of a response, up to the empty line.
    ///
    /// `length`: nil for an event stream, which ends with its connection.
    static func head(
        status: Int,
        contentType: String,
        length: Int?,
        allow: String? = nil,
        keepsAlive: Bool
    ) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.writeString("HTTP/1.1 \(status) \(HTTPResponseStatus(statusCode: status).reasonPhrase)\r\n")
        buffer.writeString("Content-Type: \(contentType)\r\n")
        if let length { buffer.writeString("Content-Length: \(length)\r\n") }
        if let allow { buffer.writeString("Allow: \(allow)\r\n") }
        buffer.writeString("Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n")
        buffer.writeString("Connection: \(keepsAlive ? "keep-alive" : "close")\r\n\r\n")
        return buffer
    }

    static func refusal(_ status: Int) -> LiveResponse {
        LiveResponse(status: status, text: "\(status) \(HTTPResponseStatus(statusCode: status).reasonPhrase)\n")
    }

    /// The first lines of a stream: a client that lost it comes back after a second.
    static let streamStart = "retry: 1000\n\n"
    /// A comment, which keeps the connection alive.
    static let heartbeat = ":\n\n"

    /// An event in the form of the HTML standard, section 9.2.
    package static func event(_ event: LiveEvent, id: UInt64) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.writeString("id: \(id)\nevent: ")
        buffer.writeString(event.name.filter { !$0.isNewline })
        var rest = Array(event.data.utf8)[...]
        var hasMore = true
        while hasMore {
            // LF, CR and CR LF all end a line.
            let line = rest.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
            buffer.writeString("\ndata: ")
            buffer.writeBytes(line)
            rest = rest[line.endIndex...]
            hasMore = !rest.isEmpty
            rest = rest.dropFirst(rest.starts(with: [UInt8(ascii: "\r"), UInt8(ascii: "\n")]) ? 2 : 1)
        }
        buffer.writeString("\n\n")
        return buffer
    }
}
